"""Ages as short texts, alike on the command line and on pages."""

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def age_text(seconds: float) -> str:
    """Format an age in at most two units, rounded down: `12s`, `3m12s`, `2h05m`, `3d04h`.

    The script `ages.js` of the dashboard does the same in the browser.
    """
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return _two(whole, MINUTE, "m", 1, "s")
    return _two(whole, HOUR, "h", MINUTE, "m") if whole < DAY else _two(whole, DAY, "d", HOUR, "h")


def _two(whole: int, size: int, unit: str, small_size: int, small_unit: str) -> str:
    large, rest = divmod(whole, size)
    small = rest // small_size
    return f"{large}{unit}{small:02d}{small_unit}" if small else f"{large}{unit}"
