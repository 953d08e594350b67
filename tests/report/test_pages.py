"""What a page says, and what it must never say."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import goodfence as gf
from goodfence.attack.scoring import Estimate
from goodfence.errors import FileProblem
from goodfence.report.pages import AuditPage, FrontierPage, Mark, Waffle, audit_page, save_result
from goodfence.report.wording import dashed, of_100
from tests.support.made_up import make_ratings

VOID = {"meta", "link", "br"}


class Elements(HTMLParser):
    """The elements of a page, and whether each is closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def enclosed(html: str) -> object:
    found = re.search(r'<script type="application/json" id="goodfence">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="session", params=["audit", "frontier"])
def html(request: pytest.FixtureRequest, page: AuditPage, comparison: FrontierPage) -> str:
    return page.html if request.param == "audit" else comparison.html


@pytest.mark.slow
def test_the_page_is_one_small_file_that_asks_for_nothing(html: str) -> None:
    elements = Elements(html)
    assert elements.open == []
    assert len(html.encode()) < 1_500_000
    for tag, attributes in elements.seen:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base")
        for name in ("src", "href", "srcset", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, name)
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "script" or attributes.get("type") == "application/json"
    assert "url(" not in html
    assert "@import" not in html
    ids = [attributes["id"] for _, attributes in elements.seen if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_holds_no_id_and_promises_no_comfort(html: str) -> None:
    assert "secret" not in html
    words = re.sub(r"<style>.*?</style>|href=\"data:[^\"]*\"", "", html, flags=re.DOTALL).lower()
    for never in (" safe", "out of ten", "out of 10", "/10", "nan ", "undefined", "nan%"):
        assert never not in words


def test_the_figures_are_inside_twice(page: AuditPage) -> None:
    html, leakage = page.html, page.survey.audit.leakage
    told = enclosed(html)
    link = re.search(r'href="data:application/json;base64,([^"]*)"', html)
    assert link is not None
    assert json.loads(b64decode(link[1])) == told
    assert isinstance(told, dict)
    assert told["attack"]["estimates"]["recovery"] == leakage.estimates["recovery"]._asdict()
    assert (told["seed"], told["data"]["name"], told["goodfence"]) == (7, "films.csv", gf.__version__)
    assert "checksum" not in told["data"]
    assert told["data"]["users"] == 160
    assert [one["targets"] for one in told["by_known"]] == [r.n_targets for r in page.survey.by_known]


def test_every_part_of_the_audit_is_told(page: AuditPage) -> None:
    html, survey = page.html, page.survey
    known = [report.settings["settings"]["known"] for report in survey.by_known]
    assert known == sorted(set(known))
    assert 8 in known
    assert len(survey.by_strategy) == 3
    assert len(survey.audit.leakage.tried) == 4
    for report in (*survey.by_known, *survey.by_strategy):
        assert f">{report.n_targets:,}</td>" in html
    assert {card for card in ("proved", "claimed", "refuted", "none") if f"card {card}" in html} == {
        "proved",
        "claimed",
        "refuted",
        "none",
    }
    assert html.count('class="tag own">this audit') == 2
    assert html.count('class="tag own">audited') == 1
    for point in survey.frontier.points:
        assert f'data-of="advantage">{Mark.of(point.advantage).text}</td>' in html
        fully = Mark.of(point.fully_recovered).text
        assert f'data-of="fully recovered">{fully}</td>' in html
    for one in survey.audit.leakage.not_tried:
        assert f"{one.attack} ({one.reason})" in html
    assert html.count('class="tag own">the strongest') == 1
    assert "In two made-up sets of ratings that differ in one rating only" in html


def test_the_verdict_comes_first_with_date_scope_and_contents(page: AuditPage) -> None:
    html, leakage = page.html, page.survey.audit.leakage
    first = html[html.index("<h1>Verdict</h1>") : html.index("<h2>")]
    assert "kNN k=10 leaks." in first
    share = of_100(leakage.fully_recovered.value)
    assert re.search(rf'class="number">{share}%</div>\s*<figcaption>of the users are', first)
    assert f"<b>Scope:</b> {leakage.date}. Attacked: all 160 users" in first
    assert "Neighbourhood: goodfence kNN k=10: neighbours of each user among all users" in first
    assert "<b>Assumed:</b> The attacker knows 8 ratings of each target" in first
    assert f'<time datetime="{leakage.date}">' in html
    wanted = re.findall(r'<li><a href="#(\w+)">', first)
    sections = re.findall(r'<section id="(\w+)">', html)
    assert ["verdict", *wanted] == sections
    assert html.count("with its 95% interval</li>") == 1  # the legend


def test_one_recommender_has_one_figure_for_one_question(page: AuditPage) -> None:
    """In the verdict, the squares, the tables and the comparison; and as the command line and JSON tell it."""
    html, survey = page.html, page.survey
    found, own = survey.audit.leakage.estimates, survey.frontier.points[0]
    assert (own.recovery, own.advantage) == (found["recovery"], found["advantage"])
    assert own.fully_recovered == found["fully_recovered"]
    assert own.n_targets == survey.audit.leakage.n_targets
    rows = re.findall(r'<tr role="row" class="own.*?</tr>', html, re.DOTALL)
    told = Mark.of(found["recovery"]).text
    shown = [row for row in rows if 'data-of="recovered"' in row]
    assert len(shown) == 3  # by knowledge, by attacker, among recommenders
    assert all(f'data-of="recovered">{told}</td>' in row for row in shown)
    inside = enclosed(html)
    assert isinstance(inside, dict)
    assert inside["verdict_line"].startswith("kNN k=10 leaks. ")
    assert dashed(inside["verdict_line"].split(" are recovered only")[0]) in html


def test_the_page_says_for_whom_it_is(html: str) -> None:
    assert "computed from everybody’s ratings, without noise" in html
    assert "not for the public" in html
    assert "sha256" not in html.lower()
    assert "checksum" not in html.lower()


def test_the_page_is_about_the_attackers_tried(html: str) -> None:
    words = re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    for sentence in re.split(r"(?<=[.;]) ", words):
        if "would have been seen" in sentence:
            assert "attacks tried" in words[: words.index(sentence) + len(sentence)]


def test_no_group_is_of_fewer_than_ten(page: AuditPage) -> None:
    for groups in (page.survey.by_activity, page.survey.by_popularity):
        assert len(groups) > 1
        assert min(group.n_users for group in groups) >= 10
    few = gf.audit(make_ratings(), gf.KNN(k=10), targets=9, trials=0, rng=7)
    html = audit_page(few, compared=[], others=3).html
    assert "Fewer than ten users were attacked" in html
    assert "users who gave" not in html


def test_one_person_has_no_interval(ratings: gf.Ratings) -> None:
    alone = gf.audit(ratings, gf.KNN(k=10), targets=1, trials=0, rng=7)
    one = audit_page(alone, compared=[], others=1)
    assert "not known" in one.html
    assert "nan" not in json.dumps(enclosed(one.html)).lower()


def test_what_is_put_into_a_page_is_escaped(page: AuditPage) -> None:
    name = "<script>alert(1)</script>\"'.csv"
    html = replace(page, data=name, command=f"goodfence audit {name}", label="<b>&").html
    assert "<script>alert" not in html
    assert Elements(html).open == []
    told = enclosed(html)
    assert isinstance(told, dict)
    assert told["data"]["name"] == name


def test_items_that_an_attacker_names_stay_unnamed() -> None:
    ratings = make_ratings()
    attack = gf.KNNAttack(known=2, choose=["secret-item-0", "secret-item-1"])
    report = gf.audit(ratings, gf.KNN(k=10), attack=attack, trials=0, rng=7)
    named = audit_page(report, compared=[], others=5)
    assert "secret" not in named.html
    assert "of certain items" in named.html


@pytest.mark.slow
def test_a_private_model_is_told_as_one() -> None:
    ratings = make_ratings(40, 30)
    model = gf.PrivateMeans(epsilon=1.0, items="from ratings")
    report = gf.audit(ratings, model, targets=3, trials=0, rng=7)
    html = audit_page(report, compared=[], others=2).html
    assert "did not try to break the proved guarantee" in html
    assert "The recommender learns" in html
    assert "They look like twins" not in html
    assert "at most 73% of the time" in html


@pytest.mark.slow
def test_a_scale_that_was_only_seen_is_told(ratings: gf.Ratings) -> None:
    seen = make_ratings(declared=False)
    ways = [gf.PrivateMeans(epsilon=1.0, items="from ratings")]
    report = gf.audit(seen, gf.KNN(k=10), targets=12, trials=0, rng=7)
    page = audit_page(report, compared=ways, others=3)
    assert "was only observed in the file" in page.html
    assert [point.status for point in page.survey.frontier.points] == ["none", "proved"]


def test_one_amount_of_knowledge_is_no_chart(page: AuditPage) -> None:
    alone = replace(page.survey, by_known=(page.survey.audit.leakage,))
    assert "how many of the target’s ratings the attacker knows" in page.html
    assert "how many of the target’s ratings the attacker knows" not in replace(page, survey=alone).html


def test_an_audit_is_not_saved_as_a_page_by_mistake(page: AuditPage, tmp_path: Path) -> None:
    with pytest.raises(gf.SettingError, match=r"gf\.audit_page"):
        save_result(page.survey.audit, tmp_path / "audit.html")
    save_result(page.survey.audit, tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text())["kind"] == "AuditReport"


def test_a_page_that_cannot_be_written_is_told_without_its_path(page: AuditPage, tmp_path: Path) -> None:
    (tmp_path / "audit.html").mkdir()
    with pytest.raises(FileProblem) as caught:
        page.save(tmp_path / "audit.html")
    assert str(tmp_path) not in str(caught.value)


def test_a_page_goes_where_a_link_points_and_never_in_the_place_of_a_pipe(
    page: AuditPage, comparison: FrontierPage, tmp_path: Path
) -> None:
    link, pipe = tmp_path / "link.html", tmp_path / "pipe.html"
    link.symlink_to(tmp_path / "page.html")
    os.mkfifo(pipe)
    for one in (page, comparison):
        one.save(link)
        assert link.is_symlink()
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == one.html
        with pytest.raises(FileProblem, match="path must be an ordinary file, and is a pipe"):
            one.save(pipe)
        assert pipe.is_fifo()


def test_a_figure_that_is_not_known_is_not_drawn() -> None:
    nothing = Mark.of(Estimate(float("nan"), float("nan"), float("nan")))
    assert (nothing.text, nothing.at, nothing.low, nothing.width) == ("not known", None, None, 0.0)
    alone = Mark.of(Estimate(0.5, float("nan"), float("nan")))
    assert (alone.text, alone.at, alone.low) == ("50 (not known)", 50.0, None)
    unknown = Estimate(float("nan"), float("nan"), float("nan"))
    empty = Waffle.of("", unknown, unknown)
    assert (empty.number, empty.n_anyway, empty.n_full) == ("?", 0, 0)
    lucky = Waffle.of("", Estimate(0.1, 0.0, 0.2), Estimate(0.3, 0.2, 0.4))
    assert (lucky.n_anyway, lucky.n_full, lucky.number) == (10, 10, "10")


def test_a_hundred_squares_are_drawn_for_each_share(page: AuditPage) -> None:
    paths = re.findall(r'<path class="(?:none|full \w+)" d="([^"]*)"', page.html)
    assert [path.count("M") for path in paths].count(0) < len(paths)
    assert sum(path.count("M") for path in paths) == 200


@pytest.mark.slow
def test_the_same_seed_gives_the_same_page_and_no_seed_is_told(ratings: gf.Ratings) -> None:
    def made(rng: int | None) -> str:
        report = gf.audit(ratings, gf.KNN(k=10), targets=20, trials=0, rng=rng)
        return audit_page(report, compared=[gf.PPNS(k=10, beta=5)], others=5).html

    assert made(7) == made(7) != made(8)
    told = enclosed(made(None))
    assert isinstance(told, dict)
    assert made(told["seed"]) == made(told["seed"])
    assert f"rng={told['seed']}" in told["command"]


def test_notebooks_show_results_without_script_or_ids(page: AuditPage) -> None:
    for one in (page.survey.audit, page.survey.audit.leakage, page.survey.frontier):
        shown = one._repr_html_()
        assert Elements(shown).open == []
        assert "secret" not in shown
        assert "<script" not in shown
        assert len(shown) < 10_000
    leakage = page.survey.audit.leakage
    hostile = replace(leakage, attacked="<script>alert(1)</script>")
    assert "<script" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()
    assert f">{leakage.estimates['advantage']}</td>" in leakage._repr_html_()


def test_reprs_hold_no_figures_of_anybody(page: AuditPage, comparison: FrontierPage) -> None:
    for one in (page, page.survey, comparison, page.survey.audit.leakage.outcomes):
        assert "secret" not in repr(one)
        assert len(repr(one)) < 300
