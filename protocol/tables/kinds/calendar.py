"""The calendar by integers: days since 1970, and the first days of years, months and weeks.

It does not know clocks, time zones or languages: the Gregorian calendar holds for all years from 1 to 9999.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

Resolution = Literal["year", "month", "week", "day", "hour"]

DAY = 86_400  # seconds
HOUR = 3600
FIRST_YEAR, LAST_YEAR = 1, 9999
_DAYS_OF_400_YEARS = 146_097
_DAYS_BEFORE_1970 = 719_468  # since 1 March of year 0, where the count below begins
_THURSDAY = 3  # 1 January 1970, counted from Monday

Date = tuple[int, int, int]


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1 January 1970. Years are counted from March, so that a leap day is the last of its year."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _DAYS_OF_400_YEARS + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _DAYS_BEFORE_1970


@lru_cache(maxsize=1 << 16)
def date_of(days: int) -> Date:
    """Year, month and day of a day's number."""
    era, of_era = divmod(days + _DAYS_BEFORE_1970, _DAYS_OF_400_YEARS)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * from_march + 2) // 5 + 1
    month = from_march + 3 if from_march < 10 else from_march - 9
    return era * 400 + year + (month <= 2), month, day


def days_in_month(year: int, month: int) -> int:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return day_number(*following, 1) - day_number(year, month, 1)


def is_date(year: int, month: int, day: int) -> bool:
    if not (FIRST_YEAR <= year <= LAST_YEAR and 1 <= month <= 12 and day >= 1):
        return False
    return day <= days_in_month(year, month)


def monday_of(days: int) -> int:
    return days - (days + _THURSDAY) % 7


def units_between(resolution: Resolution, first: int, last: int) -> int:
    """The number of years, months, weeks, days or hours that a span touches. `first` and `last` are seconds."""
    first_day, last_day = first // DAY, last // DAY
    (one_year, one_month, _), (other_year, other_month, _) = date_of(first_day), date_of(last_day)
    years = other_year - one_year
    touched = {
        "year": years,
        "month": years * 12 + other_month - one_month,
        "week": (monday_of(last_day) - monday_of(first_day)) // 7,
        "day": last_day - first_day,
        "hour": last // HOUR - first // HOUR,
    }
    return touched[resolution] + 1


def starts_between(resolution: Resolution, first: int, last: int) -> Iterator[int]:
    """Yield the seconds at which years, months, weeks, days or hours begin, after `first` and up to `last`."""
    if resolution == "hour":
        yield from range((first // HOUR + 1) * HOUR, last + 1, HOUR)
        return
    first_day, last_day = first // DAY, last // DAY
    if resolution in ("day", "week"):
        step = 1 if resolution == "day" else 7
        begin = first_day if resolution == "day" else monday_of(first_day)
        yield from (day * DAY for day in range(begin + step, last_day + 1, step))
        return
    (one_year, one_month, _), (other_year, other_month, _) = date_of(first_day), date_of(last_day)
    each = 12 if resolution == "year" else 1
    begin = one_year * 12 if resolution == "year" else one_year * 12 + one_month - 1
    for month in range(begin + each, other_year * 12 + other_month, each):
        yield day_number(month // 12, month % 12 + 1, 1) * DAY
