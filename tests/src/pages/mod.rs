//! Reports as pages, in a real Chromium: what people see, click and search, without a network and also without scripts.

mod browser;

use browser::Browser;

use crate::parts::tell;
use crate::project::Project;

/// So large may the page of 2,000 resources be, in bytes.
const LARGEST: u64 = 3_000_000;
/// How many entries are to be seen.
const SEEN: &str = "return [...document.querySelectorAll('details.e')].filter(e => e.getClientRects().length).length";
/// A text that would be a script, if anything forgot what text is.
const HOSTILE: &str = "</pre></style></script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>";

fn browser(test: &str) -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        tell(&format!("*** SKIPPED (no chromium with chromedriver): {test}"));
    }
    browser
}

/// Things that need each other, some changed, some new, one gone, and hostile text in one of them.
fn text(count: usize, value: &str) -> String {
    let hostile = HOSTILE.replace('\'', "\\u0027");
    format!(
        "resource \"terraform_data\" \"base\" {{\n  input = \"{value}\"\n}}\n\
         resource \"terraform_data\" \"each\" {{\n  count = {count}\n  input = {{ base = terraform_data.base.input, of = \"number ${{count.index}}\" }}\n}}\n\
         resource \"terraform_data\" \"hostile\" {{\n  input = \"{hostile} {value}\"\n}}\n"
    )
}

/// The page of a plan after a change, and that of `drift`.
fn pages(count: usize) -> Project {
    let place = Project::new();
    place.write("main.kf.hcl", &text(count / 2, "one"));
    place.must(0, &["init"]);
    place.apply();
    place.write("main.kf.hcl", &text(count, "two"));
    place.must(0, &["plan", "-report=html=plan.html"]);
    place.must(2, &["drift", "-report=html=drift.html"]);
    place
}

#[test]
fn people_read_search_and_click() {
    let Some(browser) = browser("people_read_search_and_click") else { return };
    let project = pages(40);
    for (file, first, has_others) in [("plan.html", "update", true), ("drift.html", "unapplied", false)] {
        browser.open(&project.path().join(file));
        let all = browser.number(SEEN);
        assert!(all >= 22, "{file}: {all}");
        assert_eq!(browser.number("return document.querySelectorAll('svg .n').length"), 42, "{file}: boxes of the picture");

        // Text is text: nothing of it runs, and it is all there.
        assert_eq!(browser.run("return window.taken === undefined"), true, "{file}");
        assert_eq!(browser.number("return document.querySelectorAll('main img, pre script').length"), 0, "{file}");

        // A group is hidden by its box, and comes back.
        browser.run(&format!("document.getElementById('c-{first}').click()"));
        let rest = browser.number(SEEN);
        assert!(rest < all && (rest > 0) == has_others, "{file}: {rest} of {all}");
        browser.run(&format!("document.getElementById('c-{first}').click()"));
        assert_eq!(browser.number(SEEN), all, "{file}");

        // The search takes words in any order.
        browser.type_into("#search", "EACH[7] terraform_data");
        assert_eq!(browser.number(SEEN), 1, "{file}");
        browser.type_into("#search", "nothing-has-this");
        assert_eq!(browser.run("return document.getElementById('none').hidden"), false, "{file}");
        browser.type_into("#search", "");
        assert_eq!(browser.number(SEEN), all, "{file}");

        // A box of the picture leads to its entry, which opens.
        browser.run("document.querySelector('svg a').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))");
        assert_eq!(browser.run("return document.querySelector(location.hash).open"), true, "{file}");

        // Light and dark, as the reader's system is; nothing was asked of a network, and nothing was refused.
        let paper = "return getComputedStyle(document.body).backgroundColor";
        let (light, dark) = (browser.scheme("light").run(paper), browser.scheme("dark").run(paper));
        assert!(light == "rgb(255, 255, 255)" && dark != light, "{file}: {light} and {dark}");
        assert_eq!(browser.number("return performance.getEntriesByType('resource').length"), 0, "{file}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn a_page_is_read_without_scripts() {
    let Some(browser) = browser("a_page_is_read_without_scripts") else { return };
    let project = pages(4);
    browser.without_scripts();
    browser.open(&project.path().join("plan.html"));
    let text = browser.text("window.taken = 1");
    assert!(text.contains("Plan: 2 to add, 4 to change, 0 to destroy.") && text.contains("terraform_data.each[3]"), "{text}");
    assert_eq!(browser.run("return document.getElementById('search').getClientRects().length"), 0, "a search that can't be");
    let all = browser.number(SEEN);
    browser.click("#c-create");
    assert_eq!(browser.number(SEEN), all - 2);
}

#[test]
fn two_thousand_resources_fit() {
    let Some(browser) = browser("two_thousand_resources_fit") else { return };
    let project = pages(2000);
    for file in ["plan.html", "drift.html"] {
        let path = project.path().join(file);
        let size = std::fs::metadata(&path).expect("a page").len();
        assert!(size < LARGEST, "{file} has {size} bytes");
        browser.open(&path);
        assert!(browser.number(SEEN) > 1000, "{file}");
        let opened = browser.number("const t = performance.getEntriesByType('navigation')[0]; return Math.round(t.loadEventEnd)");
        tell(&format!("{file}: 2,000 resources, {size} bytes, open in Chromium after {opened} ms"));
    }
}
