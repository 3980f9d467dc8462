"""`subn-party draft`: a draft of a schema from a table that has none yet, for the data owner on the spot.

It does not know how columns are described (`protocol.services.schema_profile`).
"""

from typing import Any

from party import source
from party.commands.result import Result, unknown_dataset
from party.errors import SettingsError
from party.files import write_file
from party.home.home import open_home
from party.home.layout import Home
from protocol.services.schema_draft import draft as drafted
from protocol.services.schema_draft import summary


def draft(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        names = list(opened.settings.datasets)
        name = chosen.dataset or names[0]
        if name not in names:
            raise unknown_dataset(opened, name)
        if chosen.dataset is None and len(names) > 1:
            raise SettingsError(f"there are several data sets: choose one of {', '.join(names)}")
        profile, how = source.described(home.path, opened.settings.datasets[name])
    columns = profile.columns()
    text = drafted(name, columns)
    if chosen.out is None:
        return Result({"draft": text, "columns": summary(columns)}, text.rstrip("\n").splitlines())
    write_file(chosen.out, text)
    read = [f"read with {how}"] if how else []
    lines = [f"wrote {chosen.out} from {profile.rows:,} rows of {name}", *read, *summary(columns)]
    return Result({"file": str(chosen.out), "columns": summary(columns)}, lines)
