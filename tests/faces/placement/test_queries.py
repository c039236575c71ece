"""Query strings: grammar, microversions and errors."""

from urllib.parse import quote

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, TraitFilter
from moorage.core.limits import MAX_INT
from moorage.faces.query_strings.queries import (
    TraitQuery,
    UsageQuery,
    candidate_query,
    provider_query,
    trait_query,
    usage_query,
)
from moorage.faces.query_strings.refusals import (
    QUERY_BAD_VALUE,
    QUERY_DUPLICATE_KEY,
    QUERY_MISSING_VALUE,
    ProblemError,
)
from moorage.faces.web import Limits

A = "00000000-0000-4000-8000-00000000000a"
B = "00000000-0000-4000-8000-00000000000b"
LIMITS = Limits()


def parse(text: str, version: int = 39) -> CandidateQuery:
    """Parse a candidate query."""
    return candidate_query(text.encode(), version, LIMITS).query


def refused(text: str, version: int = 39) -> ProblemError:
    """Parse a candidate query that is refused with 400."""
    with pytest.raises(ProblemError) as caught:
        candidate_query(text.encode(), version, LIMITS)
    assert caught.value.status == 400
    return caught.value


def required_each(*names: str) -> tuple[frozenset[str], ...]:
    """Return a condition for each name."""
    return tuple(frozenset((name,)) for name in names)


def test_all_parameters_of_a_query() -> None:
    """All parameters of the newest version together."""
    query = parse(
        "resources=VCPU:2,MEMORY_MB:1024&required=A,!B&required=in:C,D"
        f"&member_of=in:{A},{B}&member_of=!{B}&in_tree={A.upper()}"
        "&resources_NET=SRIOV_NET_VF:1&required_ACC=E&same_subtree=_NET,_ACC"
        "&group_policy=isolate&root_required=F,!G&limit=7"
    )
    assert query.limit == 7
    assert query.group_policy == "isolate"
    assert query.root_traits == TraitFilter(required_each("F"), frozenset("G"))
    assert query.same_subtree == (frozenset({"_NET", "_ACC"}),)
    assert query.nested
    plain, net, acc = query.groups
    assert [group.suffix for group in query.groups] == ["", "_NET", "_ACC"]
    assert plain.resources == {"VCPU": 2, "MEMORY_MB": 1024}
    assert plain.traits == TraitFilter((*required_each("A"), frozenset("CD")), frozenset("B"))
    assert plain.aggregates == AggregateFilter((frozenset({A, B}),), frozenset({B}))
    assert plain.in_tree == A
    assert (net.resources, acc.resources) == ({"SRIOV_NET_VF": 1}, {})


def test_names_in_a_query_are_collected() -> None:
    """They are in the order in which the first unknown class or trait is reported.

    That is root, then group by group; in a list of providers traits are first.
    """
    text = b"resources1=X:1&required1=in:A,B&required1=E&resources=VCPU:1,X:1&root_required=C,!D"
    words = candidate_query(text, 39, LIMITS).vocabulary.words
    assert [word.name for word in words] == ["C", "D", "X", "A", "B", "E", "VCPU"]
    assert [word.name for word in words if not word.is_trait] == ["X", "VCPU"]
    text = b"resources=X:1&required=A,!B"
    words = provider_query(text, 39, LIMITS).vocabulary.words
    assert [word.name for word in words] == ["A", "B", "X"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resources=VCPU:x&required=,", "expected positive integer amount"),
        ("required=,&resources=VCPU:x", "an empty trait"),
        ("in_tree=x&resources=VCPU:1&resources=VCPU", "'in_tree' parameter"),
        ("resources=VCPU:1&member_of=x&required=,", "'member_of' parameter"),
        ("resources1=VCPU&resources=,", "Got: VCPU."),
    ],
)
def test_the_first_error_of_a_query_is_reported(text: str, words: str) -> None:
    """Parameters of groups are checked in the order of the query."""
    assert words in refused(text).detail


def test_parsed_queries_are_cached() -> None:
    """Schedulers repeat their queries, so parsed queries are cached."""
    text = b"resources=VCPU:1&limit=3"
    assert candidate_query(text, 39, LIMITS) is candidate_query(text, 39, LIMITS)
    assert candidate_query(text, 28, LIMITS).query.nested is False


def test_repeated_parameters() -> None:
    """The last `resources` and the first `limit` count; before 1.39 the last `required`."""
    query = parse("resources=VCPU:1&resources=DISK_GB:2&limit=1&limit=2&required=A&required=B", 38)
    assert query.groups[0].resources == {"DISK_GB": 2}
    assert query.limit == 1
    assert query.groups[0].traits.required == required_each("B")


def test_amounts_beyond_every_inventory_stay_small() -> None:
    """All amounts beyond the maximum are equal, because none of them fits anywhere."""
    assert parse(f"resources=VCPU:{MAX_INT}").groups[0].resources == {"VCPU": MAX_INT}
    assert parse(f"resources=VCPU:{10**39}").groups[0].resources == {"VCPU": MAX_INT + 1}


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        ("", 39, "There must be at least one resources or resources[$S] parameter."),
        ("", 25, "At least one request group (`resources` or `resources{$S}`) is required."),
        ("", 24, "'resources' is a required property"),
        ("resources=VCPU:1&limit=1", 15, "'limit' was unexpected"),
        ("resources=VCPU:1&limit=0", 39, "Invalid query string parameters"),
        ("resources=VCPU:1&limit=1&limit=x", 39, "Invalid query string parameters"),
        ("resources=VCPU:1&limit=1%0A", 39, "Invalid query string parameters"),
        ("resources=VCPU:1&group_policy=bogus", 39, "'bogus' is not one of ['none', 'isolate']"),
        ("resources01=VCPU:1", 32, "'resources01' does not match any of the regexes"),
        ("resources1@=VCPU:1", 39, "'resources1@' does not match any of the regexes"),
        ("resources1%0A=VCPU:1", 39, "is not understood"),
        ("resources=", 39, "Badly formed resources parameter"),
        ("resources=VCPU", 39, "Got: VCPU."),
        ("resources=VCPU:1:2", 39, "Badly formed resources parameter"),
        ("resources=VCPU:fred", 39, "expected positive integer amount. Got: fred."),
        ("resources=VCPU:1_0", 39, "expected positive integer amount"),
        ("resources=VCPU:%D9%A3", 39, "expected positive integer amount"),
        ("resources=VCPU:" + "9" * 5_000, 39, "expected positive integer amount"),
        ("resources=VCPU:0", 39, "requires amount >= 1. Got: 0."),
        ("resources=VCPU:1&required=A,", 39, "of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC."),
        ("resources=VCPU:1&required=!", 39, "Got an empty trait in: !"),
        ("resources=VCPU:1&required=!A", 21, "HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: !A"),
        ("resources=VCPU:1&required=in:A", 38, "only supported since microversion 1.39"),
        ("resources=VCPU:1&required=in:A,!B", 39, "does not support forbidden traits"),
        ("resources=VCPU:1&required=in:", 39, "Got an empty trait in: in:"),
        ("resources=VCPU:1&required=A,!A", 39, "following traits keys: required: (A)"),
        ("resources=VCPU:1&required=in:A,B&required=!A,!B", 39, "required: (A, B)"),
        (f"resources=VCPU:1&member_of={A}&member_of={B}", 23, "Multiple member_of parameters"),
        (f"resources=VCPU:1&member_of=!{A}", 31, "Forbidden member_of parameters"),
        (f"resources=VCPU:1&member_of={A},{B}", 39, "must be prefixed with the 'in:' or '!in:'"),
        (f"resources=VCPU:1&member_of=in:{A},!{B}", 39, "to contain valid UUID(s)"),
        ("resources=VCPU:1&member_of=", 39, "to contain valid UUID(s)"),
        ("resources=VCPU:1&in_tree=x", 39, "'in_tree' parameter to be a format of uuid"),
        ("resources=VCPU:1&required1=A", 35, "orphaned traits keys: required1"),
        (f"resources=VCPU:1&member_of3={A}", 35, "orphaned member_of keys: member_of3"),
        (f"resources=VCPU:1&in_tree3={A}", 35, "All request groups must specify resources."),
        ("resources1=VCPU:1&resources2=VCPU:1", 39, 'The "group_policy" parameter is required'),
    ],
)
def test_refused_with_the_reason(text: str, version: int, words: str) -> None:
    """The errors have the words that clients look for."""
    assert words in refused(text, version).detail


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", QUERY_MISSING_VALUE),
        ("resources=VCPU:1&root_required=A&root_required=B", QUERY_DUPLICATE_KEY),
        ("resources=VCPU:1&root_required=A,!A", QUERY_BAD_VALUE),
        ("resources=VCPU:1&same_subtree=", QUERY_BAD_VALUE),
        ("resources=VCPU:1&same_subtree=_A,_B", QUERY_BAD_VALUE),
        ("resources=VCPU:1&required_A=B", QUERY_BAD_VALUE),
    ],
)
def test_some_refusals_have_codes(text: str, code: str) -> None:
    """These are the four codes that the API reference lists for queries."""
    assert refused(text).code == code


def test_queries_have_limits() -> None:
    """Terms and groups are counted before the search."""
    terms = ",".join(f"X{number}:1" for number in range(1_001))
    groups = "&".join(f"resources{number}=VCPU:1" for number in range(1, 66))
    for text in (f"resources={terms}", f"{groups}&group_policy=none"):
        with pytest.raises(Error) as caught:
            parse(text)
        assert caught.value.code is Code.LIMIT_EXCEEDED


def test_listing_providers() -> None:
    """All filters together; UUIDs become lower case."""
    text = (
        f"name={quote('☃ a')}&uuid={A.upper()}&in_tree={B}&resources=VCPU:1&required=T,!U"
        f"&member_of=!in:{A},{B}"
    )
    query, words = provider_query(text.encode(), 39, LIMITS)
    assert (query.name, query.uuid, query.in_tree) == ("☃ a", A, B)
    assert query.resources == {"VCPU": 1}
    assert query.traits == TraitFilter(required_each("T"), frozenset("U"))
    assert query.aggregates == AggregateFilter((), frozenset({A, B}))
    assert [word.name for word in words.words] == ["T", "U", "VCPU"]


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        ("foo=bar", 39, "Additional properties are not allowed ('foo' was unexpected)"),
        (f"uuid={A.replace('-', '')}", 39, "is not a 'uuid'"),
        ("in_tree=x", 39, "is not a 'uuid'"),
        (f"in_tree={A}", 13, "'in_tree' was unexpected"),
        (f"member_of={A}", 2, "'member_of' was unexpected"),
    ],
)
def test_listing_providers_refused(text: str, version: int, words: str) -> None:
    """Unlike in candidate queries, UUIDs must have dashes."""
    with pytest.raises(ProblemError) as caught:
        provider_query(text.encode(), version, LIMITS)
    assert words in caught.value.detail


def test_listing_traits() -> None:
    """By names, by prefix or by use; an unknown operator is ignored."""
    assert trait_query(b"", 6, LIMITS) == TraitQuery()
    assert trait_query(b"name=in:A,B&associated=TRUE", 6, LIMITS) == TraitQuery(
        names=frozenset("AB"), associated=True
    )
    assert trait_query(b"name=startswith:CUSTOM_", 6, LIMITS).prefix == "CUSTOM_"
    assert trait_query(b"name=endswith:X", 6, LIMITS) == TraitQuery()
    for text, words in (
        (b"name=x", 'Got: "x"'),
        (b"associated=maybe", 'only accepts "true" or "false"'),
    ):
        with pytest.raises(ProblemError) as caught:
            trait_query(text, 6, LIMITS)
        assert words in caught.value.detail


def test_usages() -> None:
    """A project is required; types exist since 1.38."""
    query = usage_query(b"project_id=p&user_id=u&consumer_type=all", 38, LIMITS)
    assert query == UsageQuery("p", "u", "all")
    for text, version, words in (
        (b"", 38, "'project_id' is a required property"),
        (b"project_id=", 38, "should be non-empty"),
        (b"project_id=" + b"a" * 256, 38, "is too long"),
        (b"project_id=p&consumer_type=all", 37, "'consumer_type' was unexpected"),
        (b"project_id=p&consumer_type=instance", 38, "does not match"),
    ):
        with pytest.raises(ProblemError) as caught:
            usage_query(text, version, LIMITS)
        assert words in caught.value.detail


def test_conditions_on_subtrees_are_limited() -> None:
    """The number of conditions on subtrees has its own limit."""
    groups = "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=none"
    assert len(parse(groups + "&same_subtree=_A,_B" * 500).same_subtree) == 500
    with pytest.raises(Error) as caught:
        parse(groups + "&same_subtree=_A,_B" * 501)
    assert caught.value.code is Code.LIMIT_EXCEEDED
