// Behaviour of a page between two answers of the server: clocks run, sliders set the field beside them, and a table
// is filtered while the user types. It does not know any route.
"use strict";

const pad = (number) => String(number).padStart(2, "0");

/** 75 -> "1 min 15 s", as the server writes durations. */
function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor(whole / 60) % 60)} min`;
  return `${Math.floor(whole / 86400)} d ${pad(Math.floor(whole / 3600) % 24)} h`;
}

/** Clocks: <time data-since="2026-11-18T14:00:00Z"> shows the time since then, data-until the time until then. */
function tick() {
  for (const clock of document.querySelectorAll("time[data-since], time[data-until]")) {
    const { since, until } = clock.dataset;
    const seconds = since ? (Date.now() - Date.parse(since)) / 1000 : (Date.parse(until) - Date.now()) / 1000;
    clock.textContent = duration(seconds);
  }
}
setInterval(tick, 1000);

/** Sliders: <input type="range" data-sets="epsilon" data-values="0.1 0.2 0.5"> writes one of its values into #epsilon. */
document.addEventListener("input", (event) => {
  const { sets, values, filters } = event.target.dataset;
  if (sets) {
    const field = document.getElementById(sets);
    field.value = values.split(" ")[Number(event.target.value)];
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (filters) {
    const wanted = event.target.value.toLocaleLowerCase();
    for (const row of document.querySelectorAll(`#${filters} > *`)) {
      row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted);
    }
  }
});

for (const search of document.querySelectorAll("input[data-filters]")) search.dispatchEvent(new Event("input", { bubbles: true }));

/** Whether a form's field differs from the value that the server gave it. */
function isMoved(field) {
  if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  return field.checked !== field.defaultChecked || (field.defaultValue !== undefined && field.value !== field.defaultValue);
}

/** Input typed before these scripts ran, or restored by the browser, counts as typed now. */
document.addEventListener("htmx:load", (event) => {
  for (const form of event.target.querySelectorAll("form[hx-get]")) {
    if ([...form.elements].some(isMoved)) form.dispatchEvent(new Event("change"));
  }
});
