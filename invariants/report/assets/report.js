// Steps through the traces of a report. The page is complete without it: it selects panels and rows that are there.
"use strict";
(function () {
  document.documentElement.classList.add("script");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  function stepper(article) {
    const stage = article.querySelector(".stage");
    if (!stage) return null;
    const panels = Array.from(stage.querySelectorAll(".panel"));
    const rows = new Map();
    for (const row of article.querySelectorAll("tr[data-step]")) rows.set(row.dataset.step, row);
    const stops = new Map();
    for (const stop of stage.querySelectorAll("a.stop")) stops.set(stop.getAttribute("href").slice(1), stop);
    let at = panels.findIndex((panel) => panel.classList.contains("selected"));

    function show(next, write) {
      if (next < 0 || next >= panels.length) return;
      mark(false);
      at = next;
      mark(true);
      const stop = stops.get(panels[at].id);
      if (stop) inView(stop);
      if (!write) return;
      history.replaceState(null, "", "#" + panels[at].id);
      stage.querySelector("[role=status]").textContent = panels[at].querySelector("h3").textContent;
    }

    function mark(on) {
      const panel = panels[at];
      if (!panel) return;
      panel.classList.toggle("selected", on);
      for (const part of [stops.get(panel.id), rows.get(panel.dataset.step)]) {
        if (!part) continue;
        part.classList.toggle("current", on);
        if (on) part.setAttribute("aria-current", "step");
        else part.removeAttribute("aria-current");
      }
    }

    // Only the time line is scrolled, never the page.
    function inView(stop) {
      const line = stage.querySelector(".line");
      const box = line.getBoundingClientRect();
      const own = stop.getBoundingClientRect();
      if (own.left < box.left + 40) line.scrollLeft += own.left - box.left - box.width / 2;
      else if (own.right > box.right - 40) line.scrollLeft += own.right - box.right + box.width / 2;
    }

    const self = {
      article: article,
      stage: stage,
      go(what, write) {
        const places = { first: 0, previous: at - 1, next: at + 1, last: panels.length - 1 };
        if (what in places) show(places[what], write);
        else {
          const found = panels.findIndex((panel) => panel.id === what);
          if (found < 0) return false;
          show(found, write);
        }
        return true;
      },
      reveal(smoothly) {
        const box = stage.getBoundingClientRect();
        if (box.top < 0 || box.top > innerHeight * 0.6)
          stage.scrollIntoView({ block: "start", behavior: smoothly && !still ? "smooth" : "instant" });
      },
    };

    stage.querySelector(".buttons").hidden = false;
    article.addEventListener("click", function (event) {
      const button = event.target.closest("button[data-go]");
      const link = event.target.closest("a[href^='#']");
      const row = event.target.closest("tr[data-step]");
      if (button) return void self.go(button.dataset.go, true);
      const id = link ? link.getAttribute("href").slice(1) : row && article.id + "-s" + row.dataset.step;
      if (!id || (!link && String(getSelection())) || !self.go(id, true)) return;
      event.preventDefault();
      self.reveal(true);
    });
    show(at, false);
    return self;
  }

  const steppers = Array.from(document.querySelectorAll(".violation"), stepper).filter(Boolean);

  function fromHash() {
    const id = decodeURIComponent(location.hash.slice(1));
    const found = id && steppers.find((each) => each.go(id, false));
    if (found) found.reveal(false);
  }

  // The one that has the focus, else the one that is nearest to the middle of the window.
  function active() {
    const focused = steppers.find((each) => each.article.contains(document.activeElement));
    if (focused) return focused;
    const away = (each) => {
      const box = each.article.getBoundingClientRect();
      return box.top > innerHeight / 2 ? box.top : Math.max(0, innerHeight / 2 - box.bottom);
    };
    return steppers.slice().sort((a, b) => away(a) - away(b))[0];
  }

  const always = { ArrowLeft: "previous", k: "previous", ArrowRight: "next", j: "next" };
  const inside = { ArrowUp: "previous", ArrowDown: "next", Home: "first", End: "last" };
  document.addEventListener("keydown", function (event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const one = active();
    if (!one) return;
    const here = one.stage.contains(document.activeElement);
    const what = always[event.key] || (here && inside[event.key]);
    if (!what) return;
    event.preventDefault();
    one.go(what, true);
    if (!here) one.stage.focus({ preventScroll: true });
    one.reveal(true);
  });
  addEventListener("hashchange", fromHash);
  fromHash();

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async function () {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch (refused) {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected: press Ctrl-C";
      }
    });
  }
})();
