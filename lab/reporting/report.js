
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function coloured(layout) {
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text").trim();
    const line = style.getPropertyValue("--line").trim();
    const painted = { ...layout, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text }, modebar: { bgcolor: "rgba(0,0,0,0)" } };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) painted[name] = { gridcolor: line, linecolor: line, zerolinecolor: text, ...layout[name] };
    }
    return painted;
  }

  function textColoured(trace) {
    const text = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
    return trace.type === "heatmap" ? { ...trace, textfont: { color: text } } : trace;
  }

  function draw() {
    for (const [name, figure] of Object.entries(plots)) {
      const place = document.getElementById("plot-" + name);
      if (!place || typeof Plotly === "undefined") continue;
      place.closest("figure").hidden = false;
      Plotly.react(place, figure.data.map(textColoured), coloured(structuredClone(figure.layout)), { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] });
    }
  }

  const form = document.getElementById("filters");
  const cards = Array.from(document.querySelectorAll("details.case"));
  const texts = new Map();

  function textOf(card) {
    if (!texts.has(card)) texts.set(card, card.textContent.toLowerCase());
    return texts.get(card);
  }

  function isMarked(card, wanted) {
    return JSON.parse(card.dataset.marks).some(([arm, kind, fault]) =>
      (!wanted.arm || wanted.arm === arm) && (!wanted.kind || wanted.kind === kind) && (!wanted.fault || wanted.fault === fault));
  }

  function isSure(card, confidence) {
    if (!confidence) return true;
    if (confidence === "disputed") return card.dataset.disputed === "true";
    if (confidence === "sure") return card.dataset.disputed === "false" && card.dataset.confidence !== "low";
    return card.dataset.confidence === confidence;
  }

  function isShown(card, wanted) {
    return isMarked(card, wanted) && isSure(card, wanted.confidence) &&
      (!wanted.session || card.dataset.session.toLowerCase().includes(wanted.session.toLowerCase())) &&
      (!wanted.text || textOf(card).includes(wanted.text.toLowerCase()));
  }

  function filter() {
    const wanted = Object.fromEntries(new FormData(form));
    let shown = 0;
    for (const card of cards) {
      card.hidden = !isShown(card, wanted);
      if (!card.hidden) shown += 1;
    }
    document.getElementById("count").textContent = `${shown} of ${cards.length} cases`;
  }

  // What is filtered stands in the address, as `#kind=miss&fault=claim`, so that it can be kept and passed on.
  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (location.hash && !location.hash.includes("=")) return false;
    for (const field of form.querySelectorAll("[name]")) {
      field.value = asked.get(field.name) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    return location.hash.includes("=");
  }

  function writeAddress() {
    const wanted = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) wanted.set(name, value);
    const hash = String(wanted);
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }

  function begin() {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => { writeAddress(); filter(); });
    form.addEventListener("reset", () => setTimeout(() => { writeAddress(); filter(); }));
    document.getElementById("open").addEventListener("click", () => { for (const card of cards) if (!card.hidden) card.open = true; });
    document.getElementById("close").addEventListener("click", () => { for (const card of cards) card.open = false; });
    window.addEventListener("hashchange", () => { if (readAddress()) filter(); });
    if (readAddress()) document.getElementById("disagreements").scrollIntoView();
    filter();
  }

  if (form) begin();
  draw();
  dark.addEventListener("change", draw);
})();
