"use strict";
(() => {
  const EVERY_MS = 5000;
  const ALIVE_MS = 5000;
  const LONGEST_MS = 120000;
  const GONE = "the service is gone; what you see is out of date: run `turngate dashboard` again";
  const SLOW = "the service is adding up; what you see may be out of date";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = document.getElementById("state");
  const filters = document.querySelector("form.filters");
  const figures = JSON.parse(document.getElementById("figures")?.textContent ?? "{}");
  let seen = document.body.dataset.state ?? "";

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function painted(layout) {
    const whole = { ...layout, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--text"), size: 12 }, modebar: { bgcolor: "rgba(0,0,0,0)" },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: colour("--text") }, namelength: -1 } };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) whole[name] = { gridcolor: colour("--line"), linecolor: colour("--line"), ...layout[name] };
    }
    for (const shape of whole.shapes ?? []) shape.line = { color: colour("--hold"), dash: "dash", width: 1.5 };
    return whole;
  }

  function draw() {
    if (typeof Plotly === "undefined") return;
    for (const [name, figure] of Object.entries(figures)) {
      const place = document.getElementById("plot-" + name);
      if (!place) continue;
      place.closest("figure").querySelector("p.nothing").hidden = figure !== null;
      place.hidden = figure === null;
      if (figure === null) { Plotly.purge(place); continue; }
      // A figure that was hidden or empty has no size to go by until now.
      Plotly.react(place, structuredClone(figure.data), painted(structuredClone(figure.layout)), { responsive: true, displayModeBar: false });
    }
  }

  function say(text, gone) {
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("gone", gone);
  }

  const shown = new Map();

  // What is focused stays so, by its address.
  function replace(part, html) {
    if (shown.get(part) === html) return;
    shown.set(part, html);
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.innerHTML = html;
    if (focused) Array.from(part.querySelectorAll("a")).find((one) => one.getAttribute("href") === focused)?.focus({ preventScroll: true });
  }

  function take(found) {
    if (found.parts?.sums && !document.getElementById("sums")) { location.reload(); return; }
    for (const [id, html] of Object.entries(found.parts ?? {})) {
      const part = document.getElementById(id);
      if (part) replace(part, html);
    }
    if (found.figures) { Object.assign(figures, found.figures); draw(); }
    seen = found.state;
    say("up to date, " + new Date().toLocaleTimeString(), false);
  }

  let isAsking = false;
  let count = 0;

  // Sums of years take their time; whether anybody is there is known at once.
  async function isThere() {
    try {
      return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(ALIVE_MS) })).ok;
    } catch {
      return false;
    }
  }

  async function ask() {
    if (isAsking) return;
    isAsking = true;
    const number = ++count;
    const isCurrent = () => isAsking && number === count;
    const asked = new URLSearchParams(location.search);
    asked.set("seen", seen);
    const late = setInterval(async () => {
      const isAlive = await isThere();
      if (isCurrent()) say(isAlive ? SLOW : GONE, !isAlive);
    }, ALIVE_MS);
    try {
      const answer = await fetch("/live.json?" + asked, { cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS) });
      if (answer.status === 401) say("this browser is no longer known to the service: run `turngate dashboard` again", true);
      else if (!answer.ok) say("the service could not answer (status " + answer.status + "); what you see may be out of date", true);
      else take(await answer.json());
    } catch {
      const isAlive = await isThere();
      say(isAlive ? SLOW : GONE, !isAlive);
    } finally {
      clearInterval(late);
      isAsking = false;
    }
  }

  async function watch() {
    if (!document.hidden) await ask();
    setTimeout(watch, EVERY_MS);
  }

  if (filters) {
    filters.querySelector("select[name=span]").addEventListener("change", (event) => {
      const isOwn = event.target.value === "dates";
      for (const one of filters.querySelectorAll(".dates")) one.hidden = !isOwn;
      if (!isOwn) filters.requestSubmit();
    });
    filters.querySelector("select[name=project]").addEventListener("change", () => filters.requestSubmit());
    // An address without what is not asked for is one that can be read and passed on.
    filters.addEventListener("formdata", (event) => {
      for (const [name, value] of Array.from(event.formData)) {
        const isUnused = name !== "span" && name !== "project" && event.formData.get("span") !== "dates" && name !== "tz";
        if (!value || isUnused) event.formData.delete(name);
      }
    });
    draw();
    dark.addEventListener("change", draw);
    setTimeout(watch, EVERY_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  }
})();
