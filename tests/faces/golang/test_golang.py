"""What Go reads and writes, and its replacement here: every expectation is Go's own output.

The expectations were written by a program that calls `url.ParseQuery`, `strconv.Quote`,
`json.Marshal`, `json.Decoder`, `json.Unmarshal` and `time.ParseDuration`. (Since Go 1.22
`json.Marshal` has short forms of backspace and form feed.) Only the reasons why JSON is refused are
Moorage's own.
"""

import pytest

from moorage.core import durations
from moorage.core.clock import Instant
from moorage.core.durations import DurationError
from moorage.faces.golang import bodies, query, responses
from moorage.faces.golang.bodies import BodyError

QUERIES = {
    b"type=a&type=b": '{"type":"a"}',
    b"a=1&b=x;c=2&d=3": '{"a":"1","d":"3"}',
    b"a+b=c+d": '{"a b":"c d"}',
    b"a=%41%zz&b=%41": '{"b":"A"}',
    b"a=%ff": '{"a":"\\ufffd"}',
    b"&&a&=x": '{"":"x","a":""}',
    b"a=b=c": '{"a":"b=c"}',
    b"a=%26%3D%25": '{"a":"\\u0026=%"}',
}

QUOTED = {
    b"plain": '"plain"',
    b'a"b\\c': '"a\\"b\\\\c"',
    b"\x00\x07\n\t\x7f": '"\\x00\\a\\n\\t\\x7f"',
    b"\xff\xfea": '"\\xff\\xfea"',
    b"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80": '"é € 😀"',
    b"\xe2\x80\x8b\xe2\x80\xa8\xc2\xa0\xee\x80\x80": '"\\u200b\\u2028\\u00a0\\ue000"',
    b"\xf3\xa0\x80\x81": '"\\U000e0001"',
}

STRINGS = {
    b'a"\\/': '"a\\"\\\\/"',
    b"<a>&b": '"\\u003ca\\u003e\\u0026b"',
    b"\x01\n\r\t\x7f": '"\\u0001\\n\\r\\t\x7f"',
    b"\xc3\xa9\xf0\x9f\x98\x80": '"é😀"',
    b"\xe2\x80\xa8\xe2\x80\xa9": '"\\u2028\\u2029"',
    b"\xff\xc3x": '"\\ufffd\\ufffdx"',
}

DURATIONS = {
    b"1h30m": "5400000000000",
    b"1.5h": "5400000000000",
    b"300ms": "300000000",
    b"0": "0",
    b"-0": "0",
    b"+5s": "5000000000",
    b"-1m": "-60000000000",
    b".5s": "500000000",
    b"1.s": "1000000000",
    b"1us": "1000",
    b"1\xc2\xb5s": "1000",
    b"0.3ns": "0",
    b"2562047h47m16.854775807s": "9223372036854775807",
    b"2562047h47m16.854775808s": 'time: invalid duration "2562047h47m16.854775808s"',
    b"-2562047h47m16.854775808s": "-9223372036854775808",
    b"9223372036854775808ns": 'time: invalid duration "9223372036854775808ns"',
    b"99999999999999999999h": 'time: invalid duration "99999999999999999999h"',
    b"0.333333333333333333333h": "1200000000000",
    b"": 'time: invalid duration ""',
    b"-": 'time: invalid duration "-"',
    b"10": 'time: missing unit in duration "10"',
    b"woooo": 'time: invalid duration "woooo"',
    b"1x": 'time: unknown unit "x" in duration "1x"',
    b"1h 2m": 'time: unknown unit "h " in duration "1h 2m"',
    b".s": 'time: invalid duration ".s"',
    b'1"\xff': 'time: unknown unit "\\"\\xff" in duration "1\\"\\xff"',
}

REASON = "^(malformed JSON: .+|[a-z ]+ must be a .+)$"

MAPS = {
    b"": "{}",
    b"  \n": "{}",
    b"null": "{}",
    b"nullx": "{}",
    b"{}": "{}",
    b'{"a":"b","c":""} trailing': '{"a":"b","c":""}',
    b'{"a":"b","a":"c"}x': '{"a":"c"}',
    b'{"a":null}': '{"a":""}',
    b'{"a":"\x7f"}': '{"a":"\x7f"}',
}
"""Bodies with a map of strings, all accepted by Go."""

NO_MAPS = (
    *(b'{"a":1}', b'{"b":"x","a":[1]}', b'{"a":1,"a":"b"}', b"[]", b'"x"', b"5", b"true"),
    *(b"garbage", b'{"a"', b'{"a":"b"', b"{a:1}", b'{"a" 1}', b'{"a":"b" "c"}', b'{"a":"b",}'),
    *(b"[1 2]", b'{"a":tru}', b'{"a":-x}', b'{"a":1.x}', b'{"a":1ex}', b'{"a":01}', b'{"a":NaN}'),
    *(b'{"a":"\\x"}', b'{"a":"\\u12x"}', b'{"a":"\n"}', b"\xc3\xa9", b"'", b"nul", b"\x0b{}"),
    *(b"\xef\xbb\xbf{}", b'{"a":' + b"1" * 10_000 + b"}", b'{"a":' + b"[" * 20_000),
)
"""Bodies that Go refuses if it expects a map of strings."""

NAMES = {
    b"{}": "[]",
    b"null": "[]",
    b' {"names":["a","b"]}\n': '["a","b"]',
    b'{"NAMES":["a"]}': '["a"]',
    b'{"names":["a"],"Names":["b"],"other":[{"x":1e9}]}': '["b"]',
    b'{"names":null}': "[]",
    b'{"names":["a",null]}': '["a",""]',
    b'{"x":1' + b"0" * 10_000 + b"}": "[]",
}
"""Bodies with a list of names, all accepted by Go."""

NO_NAMES = (
    *(b"", b" ", b"[]", b'"x"', b"7", b'{"names":"x"}', b'{"names":{}}', b'{"names":[1]}'),
    *(
        b'{"names":1,"names":["a"]}',
        b'{"names":["a"]} x',
        b'{"names":["a"]',
        b"nul",
        b"nullx",
        b"-",
    ),
    *(b'{"names":[tru', b'{"other":NaN}', b'{"other":Infinity}', b'{"other":-Infinity}'),
    b'{"other":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
)
"""Bodies that Go refuses if it expects a list of names."""


def text(raw: bytes) -> str:
    """Return bytes as the faces represent text."""
    return raw.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("raw", QUERIES)
def test_queries(raw: bytes) -> None:
    """The first value counts; pairs with semicolons or broken escapes are ignored."""
    assert responses.json_strings(query.query_values(raw)) == QUERIES[raw]


@pytest.mark.parametrize("raw", QUOTED)
def test_quoted(raw: bytes) -> None:
    """Unprintable characters are escaped, bytes that are not UTF-8 one by one."""
    assert responses.quoted(text(raw)) == QUOTED[raw]


@pytest.mark.parametrize("raw", STRINGS)
def test_json_strings(raw: bytes) -> None:
    """Characters with a meaning in HTML are escaped, other UTF-8 is not."""
    assert responses.json_string(text(raw)) == STRINGS[raw]


@pytest.mark.parametrize("raw", DURATIONS)
def test_durations(raw: bytes) -> None:
    """Units add up, fractions are truncated to nanoseconds, and errors quote the text."""
    try:
        found = str(durations.parse(text(raw)))
    except DurationError as error:
        found = str(error)
    assert found == DURATIONS[raw]


@pytest.mark.parametrize("raw", MAPS)
def test_maps_of_strings(raw: bytes) -> None:
    """Only the first value of a stream counts."""
    assert responses.json_strings(bodies.strings_read(raw)) == MAPS[raw]


@pytest.mark.parametrize("raw", NO_MAPS)
def test_invalid_maps_of_strings(raw: bytes) -> None:
    """Everything else is refused with a reason."""
    with pytest.raises(BodyError, match=REASON):
        bodies.strings_read(raw)


@pytest.mark.parametrize("raw", NAMES)
def test_lists_of_names(raw: bytes) -> None:
    """A body must be exactly one value; its field's name is case-insensitive."""
    assert responses.json_list(map(responses.json_string, bodies.names_read(raw))) == NAMES[raw]


@pytest.mark.parametrize("raw", NO_NAMES)
def test_invalid_lists_of_names(raw: bytes) -> None:
    """Everything else is refused with a reason."""
    with pytest.raises(BodyError, match=REASON):
        bodies.names_read(raw)


def test_times() -> None:
    """Times are in UTC and whole seconds; the zero time is in the year 1."""
    assert responses.json_time(Instant(1_700_000_000_999_999)) == '"2023-11-14T22:13:20Z"'
    assert responses.json_time(Instant(-62_135_596_800_000_000)) == '"0001-01-01T00:00:00Z"'


def test_newer_short_forms() -> None:
    """Backspace and form feed are written as Go does since 1.22."""
    assert responses.json_string("\b\f") == '"\\b\\f"'


def test_storable() -> None:
    """Characters that no database accepts are replaced; all others are kept."""
    assert responses.storable(text(b"a\xff\x00\xc3\xa9")) == "a\ufffd\ufffd\u00e9"
    assert responses.storable("\ud800 \udc00 \udc80 \udfff") == "\ufffd \ufffd \ufffd \ufffd"
