"""Excel files for tests, written by hand: texts, numbers, dates, booleans and errors, in as many sheets as wanted.

It does not know schemas.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

Cell = str | float | int | bool | date | datetime | None

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_STYLES = (  # style 1 is a date, style 2 a date with its time
    f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>'
    '<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>'
)


def write_excel(path: Path, sheets: Mapping[str, Sequence[Sequence[Cell]]], first_row: int = 1) -> None:
    with ZipFile(path, "w") as file:
        kinds = "".join(
            f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.worksheet+xml"/>'
            for number, _ in enumerate(sheets, start=1)
        )
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxml'
            'formats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            f'spreadsheetml.sheet.main+xml"/>{kinds}</Types>',
        )
        file.writestr("_rels/.rels", _relations([("officeDocument", "xl/workbook.xml")]))
        named = "".join(
            f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
            for number, name in enumerate(sheets, start=1)
        )
        file.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{named}</sheets></workbook>'
        )
        parts = [("worksheet", f"worksheets/sheet{number}.xml") for number, _ in enumerate(sheets, start=1)]
        file.writestr("xl/_rels/workbook.xml.rels", _relations([*parts, ("styles", "styles.xml")]))
        file.writestr("xl/styles.xml", _STYLES)
        for number, rows in enumerate(sheets.values(), start=1):
            lines = "".join(f'<row r="{at}">{_cells(at, row)}</row>' for at, row in enumerate(rows, start=first_row))
            text = f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
            file.writestr(f"xl/worksheets/sheet{number}.xml", text)


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    lines = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{lines}</Relationships>'


def _cells(row: int, cells: Sequence[Cell]) -> str:
    return "".join(_cell(f"{chr(ord('A') + place)}{row}", cell) for place, cell in enumerate(cells) if cell is not None)


def _cell(at: str, cell: Cell) -> str:
    if isinstance(cell, str):
        if cell.startswith("#"):
            return f'<c r="{at}" t="e"><v>{escape(cell)}</v></c>'
        return f'<c r="{at}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    if isinstance(cell, bool):
        return f'<c r="{at}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, datetime):
        days = (cell - datetime(1899, 12, 30)).total_seconds() / 86_400
        return f'<c r="{at}" s="2"><v>{days}</v></c>'
    if isinstance(cell, date):
        return f'<c r="{at}" s="1"><v>{(cell - date(1899, 12, 30)).days}</v></c>'
    return f'<c r="{at}"><v>{cell}</v></c>'


def write_far_excel(path: Path, last: str) -> None:
    """Write a header, and a text in the cell `last`, such as "XFD1048576": a file of about 1 KB."""
    write_excel(path, {"A": [["variable", "type"]]})
    with ZipFile(path) as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    row = last.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    far = f'<row r="{row}"><c r="{last}" t="inlineStr"><is><t>x</t></is></c></row></sheetData>'
    parts[sheet] = parts[sheet].replace("</sheetData>", far)
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
