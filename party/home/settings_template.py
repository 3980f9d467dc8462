"""The party.toml that `subn-party init` writes: every setting with its meaning, for the data owner to fill in.

It does not know how settings are read (`party.home.settings`).
"""

from string import Template

TEMPLATE = Template("""\
# The rules of your hospital: what may leave it, and how much epsilon it may spend. Only the data owner changes this
# file: nothing that the curator sends can override it. Budgets are exact numbers in quotes: "0.8" or "4/5". Paths are
# relative to the folder of this file. Test the file with `subn-party check`.


# The tables that may be asked about, one section each; "patients" is a name of your choice.

[datasets.patients]
source = "patients.csv"         # .csv, .csv.gz, .xlsx (.xls, .ods), .parquet, or a database, such as
                                # "postgresql+psycopg://user:password@host/db"
# query = "SELECT * FROM patients WHERE consent"        # for a database, and only there
# engine = true                 # the rows stay in the database, which counts them; for large tables in bigquery://,
                                # clickhouse://, databricks://, duckdb://, postgresql://, snowflake://, spark:// and
                                # trino://. The user needs to make tables there: the codes of a run, until it ends.
                                # docs/engines.md says which engines were tried
# snapshots = "scratch"         # the engine's schema or database for such tables, if not the one of the URL
schema = "schema.json"          # the public schema, the same at every party
epsilon_total = "4"             # the epsilon that all runs together may ever spend on this table
# delta_total = "1e-8"          # the delta that all runs together may ever spend; without it, no run with a delta
# budget = "cohort"             # one budget for all sections that name it, because they hold the same people; sections
                                # over the same file or query share their budget in any case; sections that query
                                # databases otherwise, or read equal files, each need one
# formerly = ["cases"]          # after renaming this section: its former names, whose spending goes on to count
# spent_before = "1.5"          # in a new home after a lost one: the epsilon already spent on these people
# delta_spent_before = "1e-9"   # and the delta
# person_key = "patient_id"     # the column that tells persons apart; it never leaves and is not counted; without the
                                # next setting it must name every person once
# rows_per_person = 3           # so many rows of a person take part, chosen at random (1: one of them); without
                                # a key: your word that nobody has more
out_of_range = "refuse"         # what the schema does not list: "refuse", "clamp" (numbers) or "missing";
                                # or by column: { age = "clamp", bmi = "missing" }
# How a CSV file is written is found out, and shown by `subn-party check`. Where that is wrong, say so:
# delimiter = ";"               # also ",", "|" or "\t"
# decimal = ","                 # the sign in 3,5; or "."
# encoding = "windows-1252"     # also "utf-8", "iso-8859-1" or "utf-16"
# quote = '"'                   # the sign around fields; also "'", or "" for none
# sheet = "Admissions"          # the sheet of an Excel file (the first)


# Rules for runs. A run that breaks a rule is refused, whoever asks.

[policy]
accept = "ask"                  # "ask": you decide on every run; "auto": runs that this file allows are accepted
epsilon_per_run = "1"           # the most epsilon that one run may cost a table
# delta_per_run = "1e-9"        # allows runs with a delta, up to this one; far below one over your rows
methods = $methods
noise = $noise
updates = $updates  # not "replace", which other parties can see through
smallest_parties = 2            # the fewest parties that a run may have
smallest_rows = 100             # the fewest rows that each of them may have
smallest_insiders = 1           # a run must protect your rows from so many other parties that pool what they know;
                                # 0 would mean that you trust every one of them
# retired = ["patients-2019"]   # former sections whose rows are not served any more: what was spent on them is at rest


# Your pages and the local interface, on this machine only.

[local]
port = 8470
# names = ["127.0.0.1"]         # names by which your browser asks for the pages, the first one shown by `subn-party
                                # page`; with ":8471" where a browser has to use another port than the one above
# host = "0.0.0.0"              # to reach the pages from other machines: where to listen,
# certificate = "pages.pem"     # and your organisation's certificate for the names, with its chain and its key
# certificate_key = "pages.key" # the key, if it is in a file of its own


# The way to the curator, where it leads through your organisation's proxy.

# [network]
# proxy = "http://proxy.hospital.example:3128"  # or http://NAME:PASSWORD@HOST:PORT; "none" for no proxy; where nothing
                                # is said, HTTPS_PROXY and NO_PROXY in the environment decide
# ca_bundle = "hospital-ca.pem" # your organisation's own certificate authorities, beside those of this machine


# `subn-party enrol` adds a section [curator]: the one curator that this party talks to, with its key.
#
# Compare the fingerprint of every other party with its data owner, by telephone or mail, and note it here. Until you
# have noted it, runs with that party need your decision, even if accept = "auto". If the party then comes with other
# keys, the run is refused.
#
# [peers."South Hospital"]
# fingerprint = "0123 4567 89ab cdef 0123 4567 89ab cdef"
""")
