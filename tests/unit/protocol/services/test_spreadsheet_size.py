"""How far sheets reach is found out without making a table of them, in every form that a reader takes."""

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import pytest

from protocol.errors import DataError
from protocol.services import spreadsheet_size
from protocol.services.spreadsheet_size import check_size

FAR = "a sheet reaches to row {:,} and column {:,}, "
BLANKS = "<row r='9'><c r='A9' s='1'/><c r='XFD9' s='1'/></row>"  # coloured, not filled


def zipped(parts: Mapping[str, str | bytes], method: int = ZIP_DEFLATED) -> BytesIO:
    file = BytesIO()
    with ZipFile(file, "w", method) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return file


def accepted(file: BytesIO, source: str = "t.xlsx") -> bool:
    """Whether it is, although nothing beyond one cell may be filled; otherwise it raises."""
    check_size(source, file, 1)
    return True


def refused(file: BytesIO, source: str = "t.xlsx", most: int = 1000) -> str:
    with pytest.raises(DataError) as caught:
        check_size(source, file, most)
    return str(caught.value)


def of_cells(rows: str) -> BytesIO:
    return zipped({"xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>"})


@pytest.mark.parametrize(
    ("rows", "row", "column"),
    [
        ("<row r='1'><c r='A1'><v>1</v></c></row><row r='500'><c r='C500'><v>1</v></c></row>", 500, 3),
        ("<row r='500'><c r='c500'><v>1</v></c></row>", 500, 3),
        ("<row r='400'/><row><c/><c/><c><is><t>x</t></is></c></row>", 401, 3),
        ("<x:row xmlns:x='y' r='2'><x:c r='XFD2'><x:v>1</x:v></x:c></x:row>", 2, 16384),
        ("<!-- <c r='A1'> --><row r='2'><c t='n' r='XFD2'><v>1</v></c></row>" + BLANKS, 2, 16384),
        ("<row r='1'><c r='" + "Z" * 100 + "1'><v>1</v></c></row>", 1, 8353082582),
    ],
)
def test_the_last_filled_cell_of_excel(rows, row, column):
    assert FAR.format(row, column) in refused(of_cells(rows))


def test_cells_without_content_do_not_count():
    assert accepted(of_cells("<row r='1'><c r='A1'><v>1</v></c></row>" + BLANKS))


def ods(cells: str) -> BytesIO:
    spaces = 'xmlns:table="t" xmlns:office="o" xmlns:text="x"'
    return zipped({"content.xml": f"<doc {spaces}><table:table>{cells}</table:table></doc>"})


def test_repeated_cells_of_libreoffice():
    filled = '<table:table-cell office:value-type="float" table:number-columns-repeated="16000"/>'
    row = f'<table:table-row table:number-rows-repeated="1000">{filled}</table:table-row>'
    assert FAR.format(1000, 16000) in refused(ods(row), "t.ods")
    rest = '<table:table-cell table:number-columns-repeated="16384"/>'
    one = "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row>"
    blank = f'<table:table-row table:number-rows-repeated="1048575">{rest}</table:table-row>'
    assert accepted(ods(one + blank), "t.ods")


def record(kind: bytes, number: int, more: bytes = b"") -> bytes:
    content = number.to_bytes(4, "little") + more
    return kind + bytes([len(content)]) + content


def test_records_of_binary_excel():
    begin = b"\x81\x01\x00\x91\x01\x00"
    row, far = record(b"\x00", 1_048_575, bytes(13)), record(b"\x05", 16_383, bytes(12))
    parts = {"xl/worksheets/sheet1.bin": begin + record(b"\x00", 0) + record(b"\x05", 0) + row + far}
    assert FAR.format(1_048_576, 16_384) in refused(zipped(parts), "t.xlsb", 1 << 25)
    assert accepted(zipped({"xl/worksheets/sheet1.bin": begin + row}), "t.xlsb")


def test_what_unpacks_to_too_much_is_refused_whatever_it_says_of_itself(monkeypatch):
    monkeypatch.setattr(spreadsheet_size, "MOST_BYTES", 1 << 20)
    file = zipped({"xl/media/a.png": bytes(2 << 20)})
    assert "unpacks to more than" in refused(file)
    size = (2 << 20).to_bytes(4, "little")
    assert "unpacks to more than" in refused(BytesIO(file.getvalue().replace(size, bytes([5, 0, 0, 0]))))


@pytest.mark.parametrize(
    "file",
    [
        BytesIO(b"no zip"),
        of_cells("<row"),
        of_cells(f"<row r='{'9' * 5000}'/>"),
        of_cells(f"<row r='{'9' * (3 << 20)}"),
        zipped({"xl/worksheets/sheet1.xml": "<x/>"}, ZIP_BZIP2),
        zipped({"xl/worksheets/sheet1.bin": b"\x81\x01\x00\x00\x09"}),
    ],
)
def test_a_broken_file_is_refused(file):
    assert "not a readable Excel file" in refused(file)


def test_an_older_excel_file_is_no_zip_and_not_looked_at():
    assert accepted(BytesIO(b"\xd0\xcf\x11\xe0"), "t.xls")
