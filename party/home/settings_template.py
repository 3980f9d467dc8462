"""The party.toml that `subn-party init` writes: every setting with what it means, to be filled in by the data owner.

It does not know how settings are read (`party.home.settings`).
"""

from string import Template

TEMPLATE = Template("""\
# What this party lets out, to whom, and for how much privacy. Only the data owner changes this file: nothing that
# the curator sends can override it. Budgets are exact numbers in quotes: "0.8" or "4/5". Paths are relative to the
# folder of this file. `subn-party check` tells whether all of it fits together.


# The tables that may be asked about, one section each; "patients" is a name of your choice.

[datasets.patients]
source = "patients.csv"         # .csv, .csv.gz, .parquet, or a database: "postgresql+psycopg://user:password@host/db"
# query = "SELECT * FROM patients WHERE consent"        # for a database, and only there
schema = "schema.json"          # the public schema, the same at every party
epsilon_total = "4"             # what all runs together may ever spend on this table
# delta_total = "1e-8"          # what runs with privacy = "zcdp" may ever add up to; without it there are none
# person_key = "patient_id"     # a column that must name every person once; it never leaves and is not counted
out_of_range = "refuse"         # what the schema does not list: "refuse", "clamp" (numbers) or "missing";
                                # or by column: { age = "clamp", bmi = "missing" }


# What a run must be like. What it is not is refused, whoever asks.

[policy]
accept = "ask"                  # "ask": you accept every run by hand; "auto": what this file allows is accepted
epsilon_per_run = "1"           # the most that one run may cost a table
# delta_per_run = "1e-9"        # allows runs with privacy = "zcdp" up to this delta; far below one over your rows
methods = $methods
noise = $noise
updates = $updates  # not "replace", which other parties can see through
smallest_parties = 2            # a run has at least so many parties
smallest_rows = 100             # and each of them at least so many rows
smallest_insiders = 1           # a run must protect you from so many other parties that pool what they know;
                                # 0 would mean that you trust every one of them


# The page and the interface for you, on this machine only.

[local]
port = 8470


# `subn-party enrol` adds a section [curator]: the one curator that this party talks to, with its key.
#
# Compare the fingerprint of every other party with its data owner, by voice or mail, and note it here. While one is
# missing, a run with that party waits for you even if accept = "auto"; another key under that name is refused.
#
# [peers."South Hospital"]
# fingerprint = "0123 4567 89ab cdef 0123 4567 89ab cdef"
""")
