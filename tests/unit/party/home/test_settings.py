import json
import re
import stat
from fractions import Fraction

import pytest

from party.errors import SettingsError
from party.files import write_file
from party.home.layout import Home
from party.home.settings import add_curator, add_peer, dataset_for, load, schema_of, template
from protocol.tables.schema import Schema
from tests.support.engines import in_engine
from tests.support.small_runs import BITS, MIXED

KEY = "0123456789abcdef" * 4
PRINT = "0123 4567 89ab cdef 0123 4567 89ab cdef"


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    write_file(home.settings, template())
    return home


def complaint(home, before, after):
    """The refusal of the template with one change; its file name is taken off."""
    text = template()
    assert before in text
    home.settings.write_text(text.replace(before, after, 1))
    with pytest.raises(SettingsError) as caught:
        load(home)
    sentence = str(caught.value)
    assert sentence.startswith(f"{home.settings}: ")
    return sentence.removeprefix(f"{home.settings}: ")


def test_the_template_is_a_party_that_can_start(home):
    settings = load(home)
    patients = settings.datasets["patients"]
    assert (patients.source, patients.schema_file, patients.epsilon_total) == ("patients.csv", "schema.json", 4)
    assert (patients.out_of_range, patients.person_key, patients.is_database) == ("refuse", None, False)
    assert (settings.policy.accept, settings.policy.epsilon_per_run) == ("ask", Fraction(1))
    assert (settings.curator, settings.peers, settings.local.port) == (None, {}, 8470)
    assert stat.S_IMODE(home.settings.stat().st_mode) == 0o600


def test_a_rule_that_an_older_template_named_and_no_plan_has_any_more_is_left_out(home):
    home.settings.write_text(re.sub("^updates = .*$", 'updates = ["accumulate", "guided"]', template(), flags=re.M))
    assert load(home).policy.updates == ("accumulate",)


def test_a_name_that_cannot_be_seen_is_not_noted(home):
    before = home.settings.read_text()
    with pytest.raises(SettingsError, match="no control characters and no invisible ones"):
        add_curator(home, "del\x7f\u0001\t", "https://curator.example:8460", bytes.fromhex(KEY), "")
    assert home.settings.read_text() == before


def test_what_the_template_has_commented_out_can_be_switched_on(home):
    lines = template().replace('source = "patients.csv"  ', 'source = "sqlite:///p.db"  ')
    for start in ("query", "person_key", "rows_per_person", "[peers", "fingerprint"):
        lines = lines.replace(f"# {start}", start)
    home.settings.write_text(lines)
    settings = load(home)
    patients = settings.datasets["patients"]
    assert (patients.person_key, patients.rows_per_person, patients.is_database) == ("patient_id", 3, True)
    assert patients.query == "SELECT * FROM patients WHERE consent"
    assert settings.peers["South Hospital"].fingerprint == PRINT


def test_the_home_knows_its_files(tmp_path):
    home = Home(tmp_path)
    files = [home.settings, home.keys, home.ledger, home.audit, home.lock, home.rows]
    assert [file.name for file in files] == ["party.toml", "keys", "ledger.db", "audit.jsonl", "lock", "rows"]
    assert {file.parent for file in files} == {tmp_path}


def test_rules_by_column_are_read(home):
    home.settings.write_text(template().replace('"refuse"', '{ age = "clamp", bmi = "missing" }'))
    assert load(home).datasets["patients"].out_of_range == {"age": "clamp", "bmi": "missing"}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('accept = "ask"', 'accept = "maybe"', "policy.accept: found 'maybe', expected 'ask' or 'auto'"),
        (
            'epsilon_per_run = "1"',
            "epsilon_per_run = 0.8",
            'policy.epsilon_per_run: expected an exact number such as "0.8" or "4/5", found 0.8',
        ),
        (
            'epsilon_total = "4"',
            'epsilon_total = "0"',
            "datasets.patients.epsilon_total: found '0', expected a number greater than 0",
        ),
        ("port = 8470", 'port = "x"', "local.port: found 'x', expected a whole number without quotes"),
        ("port = 8470", "port = 70000", "local.port: found 70000, expected a number less than or equal to 65535"),
        ("port = 8470", "prt = 1", "local.prt: is not a setting; remove it or correct its spelling"),
        (
            '= "refuse"',
            '= "drop"',
            "datasets.patients.out_of_range: found 'drop', expected 'refuse', 'clamp' or 'missing'",
        ),
        (
            '= "refuse"',
            "= { age = 3 }",
            "datasets.patients.out_of_range.age: found 3, expected 'refuse', 'clamp' or 'missing'",
        ),
        ("methods = ", "methods = []  # ", "policy.methods: is empty; expected at least one entry"),
        ("updates = ", 'updates = "joint"  # ', "policy.updates: found 'joint', expected a list in brackets"),
        (
            "methods = ",
            "methods = [1]  # ",
            "policy.methods.0: found 1, expected 'dp-subn', 'guided', 'privbayes', 'privabn', 'jtree', 'dp-ccbn' or "
            "'independent'",
        ),
        ("smallest_rows = 100", "smallest_rows = 1.5", "policy.smallest_rows: found 1.5, expected a whole number"),
        ("[policy]", "[polcy]", "polcy: is not a setting; remove it or correct its spelling"),
        ('epsilon_total = "4"', "", "datasets.patients.epsilon_total: is missing; add it"),
        ('schema = "schema.json"', "", "datasets.patients.schema: is missing; add it"),
        (
            "# query =",
            "query =",
            "datasets.patients: query: is for databases only; this source is a file",
        ),
        (
            '"patients.csv"',
            '"sqlite:///p.db"',
            "datasets.patients: query: is missing; a database needs the query whose rows are the table",
        ),
        (
            "[local]",
            f'[peers.South]\nfingerprint = "{PRINT[:-1]}"\n[local]',
            f"peers.South.fingerprint: found '{PRINT[:-1]}', expected 8 groups of 4 hexadecimal digits",
        ),
        (
            "[local]",
            f'[curator]\nname = "n"\nurl = "curator.org"\nkey = "{KEY}"\n[local]',
            "curator.url: found 'curator.org', expected a URL that begins with http:// or https://",
        ),
        (
            "[local]",
            '[curator]\nname = "n"\nurl = "http://x"\nkey = "abc"\n[local]',
            "curator.key: found 'abc', expected 64 hexadecimal digits",
        ),
        ("[local]", "curator = 3\n[local]", "policy.curator: is not a setting"),
        ("[datasets.patients]", "local = 3\n[datasets.patients]", None),
        ("port = 8470", "port =", None),
    ],
)
def test_a_mistake_is_named_by_field_with_what_was_found_and_is_expected(home, before, after, sentence):
    found = complaint(home, before, after)
    assert found.startswith(sentence or "this is not TOML: "), found


def test_a_section_that_is_no_section(home):
    home.settings.write_text('local = 3\ndatasets = {}\n[policy]\nepsilon_per_run = "1"\n')
    with pytest.raises(SettingsError, match=r"datasets: is empty; expected at least one entry"):
        load(home)
    home.settings.write_text(
        template().replace("[local]", "").replace("port = 8470", "").replace("# The rules", "local = 3\n# The rules", 1)
    )
    with pytest.raises(SettingsError, match=r"party\.toml: local: found 3, expected a section"):
        load(home)


def test_a_password_is_never_repeated(home):
    secret = "postgresql://user:hunter2@host/db"
    assert "hunter2" not in complaint(home, '"patients.csv"', f'"{secret}"')
    assert "hunter2" not in complaint(home, '"patients.csv"', f'["{secret}"]')
    home.settings.write_text(template().replace('"patients.csv"', f'"{secret}"').replace("# query", "query"))
    assert "hunter2" not in repr(load(home))
    assert "SELECT" not in repr(load(home))


def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path):
    home = Home(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match=r"party\.toml: cannot be read \(No such file .*`subn-party init` makes"):
        load(home)
    home = Home(tmp_path)
    home.settings.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not in UTF-8"):
        load(home)


# Schemas


def schemas(home, **texts):
    sections = []
    for name, text in texts.items():
        (home.path / f"{name}.json").write_text(text)
        sections.append(f'[datasets.{name}]\nsource = "t.csv"\nschema = "{name}.json"\nepsilon_total = "1"\n')
    home.settings.write_text("\n".join(sections) + '[policy]\nepsilon_per_run = "1"\n')
    return load(home)


def test_a_data_set_is_found_by_its_schema(home):
    settings = schemas(home, bits=BITS.to_json(), mixed=MIXED.to_json())
    assert schema_of(home, "bits", settings.datasets["bits"]).hash == BITS.hash
    assert dataset_for(home, settings, MIXED.hash) == "mixed"
    assert dataset_for(home, settings, "0" * 64) is None


def test_two_data_sets_with_one_schema_are_refused(home):
    settings = schemas(home, one=BITS.to_json(), two=json.dumps(json.loads(BITS.to_json())))
    with pytest.raises(
        SettingsError, match=r"datasets one and two have the same schema, .* give their schemas different"
    ):
        dataset_for(home, settings, BITS.hash)
    titled = Schema.parse(json.loads(BITS.to_json()) | {"title": "two"})
    settings = schemas(home, one=BITS.to_json(), two=titled.to_json())
    assert dataset_for(home, settings, BITS.hash) == "one"


def test_a_schema_that_is_absent_or_broken_is_named(home):
    settings = schemas(home, broken="{")
    with pytest.raises(SettingsError, match=r"broken\.json: Schema: this is not JSON"):
        schema_of(home, "broken", settings.datasets["broken"])
    (home.path / "broken.json").unlink()
    with pytest.raises(SettingsError, match=r"party\.toml: datasets\.broken\.schema: .*cannot be read \(No such file"):
        schema_of(home, "broken", settings.datasets["broken"])


# Additions


@pytest.mark.parametrize("name", ["north", 'St. "Mary"', "a\\b", "Klinik Süd", "🏥"])
def test_what_is_learned_later_is_added_and_the_owner_s_comments_stay(home, name):
    settings = add_curator(home, name, "https://curator.example:8460", bytes.fromhex(KEY), "")
    assert (settings.curator.name, settings.curator.url, settings.curator.key) == (
        name,
        "https://curator.example:8460",
        KEY,
    )
    settings = add_peer(home, name, PRINT)
    assert settings.peers[name].fingerprint == PRINT
    assert home.settings.read_text().startswith(template())
    assert stat.S_IMODE(home.settings.stat().st_mode) == 0o600


def test_nothing_is_added_twice(home):
    add_curator(home, "north", "https://curator.example", bytes.fromhex(KEY), "")
    with pytest.raises(SettingsError, match=r"has a section \[curator\] already"):
        add_curator(home, "north", "https://elsewhere.example", bytes.fromhex(KEY), "")
    add_peer(home, "south", PRINT)
    before = home.settings.read_text()
    add_peer(home, "south", PRINT)
    assert home.settings.read_text() == before
    with pytest.raises(SettingsError, match="knows 'south' already"):
        add_peer(home, "south", PRINT[::-1])


def test_an_addition_that_cannot_be_read_again_is_taken_back(home):
    with pytest.raises(SettingsError, match=r"curator\.url"):
        add_curator(home, "north", "no URL", bytes.fromhex(KEY), "")
    assert home.settings.read_text() == template()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://subn:secret@host/db", "postgresql://host/db"),
        ("postgresql://subn:se@cret@host/db", "postgresql://host/db"),
        ("postgresql://subn:secret?more@host/db", "postgresql://"),
        ("postgresql://host/db?user=subn&password=a@secret", "postgresql://"),
        ("postgresql://subn:secret@host/db?password=secret", "postgresql://host/db"),
        ("duckdb:////data/a.duckdb", "duckdb:////data/a.duckdb"),
        ("spark://?spark.master=yarn", "spark://"),
    ],
)
def test_an_engine_is_shown_without_a_password(url, shown):
    assert in_engine(url).engine_shown == shown
