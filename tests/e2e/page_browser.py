"""Looks at the page of ddpctl in Chromium: SERVER (page_recorded), a FOLDER for the browser, and where screenshots go.

Each story opens pages of a server with recorded states and asks the browser what it shows.
"""
import contextlib, statistics, subprocess, sys

from browser import Browser

server, folder, screenshots = sys.argv[1:4]
LIVE = "document.getElementById('link').textContent == 'live'"
CELLS = "document.querySelectorAll('#nodes .node')"


class Served:
    def __init__(self, nodes):
        self.process = subprocess.Popen([server, str(nodes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def show(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().startswith("shown "), "the server has ended"


@contextlib.contextmanager
def served(nodes):
    one = Served(nodes)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


def check(what, found, expected=True):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, not {expected!r}")


def no_complaints(page):
    check("the browser complains", page.complaints(), [])


def text(page, name):
    return page.value(f"document.getElementById('{name}').innerText")


def shoot(page, name):
    if screenshots:
        page.screenshot(f"{screenshots}/{name}.png")


# All sizes, colours and widths: every node is there, nothing is cut off or lies over another thing.
def sizes(browser):
    for nodes in (1, 8, 1000):
        with served(nodes) as job:
            job.show("states")
            for name, how in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 360, "height": 740}),
                              ("dark-phone", {"width": 360, "height": 740, "dark": True})):
                page = browser.open(job.url, **how)
                page.wait_for(LIVE)
                check("nodes", page.value(CELLS + ".length"), nodes)
                check("wider than the window", page.value("document.documentElement.scrollWidth <= innerWidth"))
                check("cells that lie over each other", page.value("""(() => {
                    const boxes = [...document.querySelectorAll('#nodes .node')]
                        .map(cell => cell.getBoundingClientRect());
                    boxes.sort((a, b) => a.top - b.top || a.left - b.left);
                    let bad = boxes.filter(box => box.width < 8 || box.height < 8).length;
                    for (let i = 1; i < boxes.length; ++i)
                        if (boxes[i].top === boxes[i - 1].top && boxes[i].left < boxes[i - 1].right) ++bad;
                    return bad; })()"""), 0)
                # Words against their ground: 4.5 to 1, as WCAG's AA wants it. Only where the ground is plain.
                check("words that are hard to read", page.value(CONTRAST), [])
                dark = page.value("getComputedStyle(document.body).backgroundColor")
                check("ground", dark == "rgb(18, 21, 27)", bool(how.get("dark")))
                no_complaints(page)
                shoot(page, f"{nodes}-{name}")
                page.close()


CONTRAST = """(() => {
    const rgb = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(x => x / 255)
        .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)
        .reduce((sum, x, i) => sum + x * [.2126, .7152, .0722][i], 0);
    const ground = element => {
        for (; element; element = element.parentElement) {
            const color = rgb(getComputedStyle(element).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const bad = [];
    for (const element of document.querySelectorAll('h1,h2,p,dt,dd,li,b,small,strong,time,span,th,td,summary')) {
        if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
        if (!element.checkVisibility()) continue;
        const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
        const ratio = (a + .05) / (b + .05);
        if (ratio < 4.5) bad.push(element.textContent.slice(0, 40) + ' ' + ratio.toFixed(2));
    }
    return bad; })()"""


# Each state has a shape of its own, not only a colour.
def shapes(browser):
    with served(20) as job:
        job.show("states")
        page = browser.open(job.url)
        page.wait_for(LIVE)
        looks = page.value("""[...document.querySelectorAll('#legend .shape')].map(shape => {
            const style = getComputedStyle(shape);
            return [style.clipPath, style.borderTopStyle, style.borderTopLeftRadius].join(); })""")
        check("states", len(looks), 11)
        check("shapes", len(set(looks)), 11)
        page.close()


# The address bar loses the token, and the page gets news without being loaded again.
def lives(browser):
    with served(8) as job:
        page = browser.open(job.url)
        page.wait_for(LIVE)
        check("token in the address bar", "token" in page.value("location.href"), False)
        check("cookie for scripts", page.value("document.cookie"), "")
        check("headline", text(page, "headline"), "runs")
        page.value("window.same = 1")
        job.show("states")
        page.wait_for("document.getElementById('headline').textContent == 'waits'")
        check("what it waits for", "waiting for gpu0009" in text(page, "facts"))
        check("loaded again", page.value("window.same"), 1)
        check("generations", page.value("document.querySelectorAll('#entries li').length"), 4)
        check("cause", "rank 3 (local 3 on gpu0001) exited with 9" in text(page, "entries"))
        check("time", "(80 %) were training that is kept" in text(page, "goodput"))
        no_complaints(page)
        page.close()


# It says so when it shows what was: the job does not answer, the job has ended, the server is gone.
def is_true(browser):
    with served(8) as job:
        page = browser.open(job.url)
        page.wait_for(LIVE)
        check("banner", page.value("document.getElementById('banner').hidden"))
        job.show("lost")
        page.wait_for("document.getElementById('banner').checkVisibility()")
        check("why", "no node of the job answers" in text(page, "banner"))
        check("headline", text(page, "headline"), "does not answer")
        page.wait_for("/^What you see is [1-9][0-9]* s old/.test(document.getElementById('age').textContent)")
        check("stale", page.value("document.body.classList.contains('stale')"))
        check("words that are hard to read", page.value(CONTRAST), [])
        shoot(page, "lost")
        job.show("running")
        page.wait_for(LIVE)
        check("banner", page.value("document.getElementById('banner').hidden"))
        job.show("ended")
        page.wait_for("document.getElementById('headline').textContent == 'has ended with code 7'")
        check("end", "rank 2 on gpu0001 exited with 7" in text(page, "facts"))
        check("nodes after the end", text(page, "legend"), "8 recorded")
        check("words that are hard to read", page.value(CONTRAST), [])
        shoot(page, "ended")
        job.process.kill()
        page.wait_for("document.getElementById('link').textContent == 'not connected'")
        check("banner", "The connection to ddpctl page is lost" in text(page, "banner"))
        page.close()


# Names and sentences that are markup stay text.
def markup(browser):
    with served(8) as job:
        job.show("hostile")
        page = browser.open(job.url)
        page.wait_for(LIVE)
        check("name", text(page, "name").startswith("<script>document.title='owned'"))
        check("node", page.value(CELLS + "[0].querySelector('b').textContent").startswith("<script>"))
        page.value("document.getElementById('table-of-nodes').open = true")
        page.wait_for("document.querySelectorAll('#node-rows tr').length == 8")
        check("elements from texts", page.value("document.querySelectorAll('img, main script').length"), 0)
        check("title", "owned'" in page.value("document.title") and page.value("document.title") != "owned")
        # The policy would stop it besides.
        page.value("""try { document.body.innerHTML += '<b>x</b>' } catch (error) { window.stopped = 1 }""")
        check("the policy lets markup in", page.value("window.stopped"), 1)
        page.close()


# By keyboard, and as a screen reader has it.
def keyboard(browser):
    with served(1000) as job:
        job.show("states")
        page = browser.open(job.url)
        page.wait_for(LIVE)
        check("stops of the tab key", page.value("document.querySelectorAll('#nodes [tabindex=\"0\"]').length"), 1)
        page.value("document.querySelector('#nodes [tabindex=\"0\"]').focus()")
        for _ in range(3):
            page.key("ArrowRight")
        check("text", text(page, "node-text"),
              "gpu0004: starting (it is starting, as this sentence says), ranks 12–15, step 48210")
        page.key("End")
        check("last", page.value("document.activeElement.getAttribute('aria-label')").startswith("gpu1000: running"))
        page.key("Home")
        page.key("ArrowDown")
        check("below", page.value(
            "document.activeElement.offsetLeft == document.querySelector('#nodes .node').offsetLeft && "
            "document.activeElement.offsetTop > document.querySelector('#nodes .node').offsetTop"))
        tree = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
        check("list", ("listbox", "Nodes") in roles)
        check("options", sum(role == "option" and ": " in name for role, name in roles), 1000)
        for name in ("How it stands", "Nodes and ranks", "Generations", "Where the time went"):
            check(name, ("heading", name) in roles and ("region", name) in roles)
        check("status", any(role == "status" for role, _ in roles))
        check("moves", page.value("getComputedStyle(document.getElementById('nodes')).transitionDuration"), "0s")
        page.close()
        page = browser.open(job.url, still=False)
        check("moves", page.value("getComputedStyle(document.getElementById('nodes')).transitionDuration"), "0.2s")
        page.close()


# A figure for people, no limit: the machine may be busy.
def first_paint(browser):
    for nodes in (1, 1000):
        with served(nodes) as job:
            times = []
            for _ in range(9):
                page = browser.open(job.url)
                page.wait_for(LIVE + " && performance.getEntriesByName('first-contentful-paint').length")
                times.append(page.value("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                page.close()
            print(f"first paint of {nodes} nodes: {statistics.median(times):.0f} ms (fastest {min(times):.0f})")


with Browser(folder) as browser:
    for story in (sizes, shapes, lives, is_true, markup, keyboard, first_paint):
        print("-", story.__name__, flush=True)
        story(browser)
