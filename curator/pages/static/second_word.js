// The box that starts a plan against advice, beside a forecast that changes. It does not know any route.
"use strict";

/** A box marked data-word changes no forecast: ticking it asks for none. A forecast that was on its way meanwhile keeps
    the tick if it brings the same word, which is of the same advice. */
for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => "word" in event.target.dataset && event.stopPropagation(), true);
}
let word;
document.addEventListener("htmx:beforeSwap", () => { word = document.querySelector("[data-word]:checked")?.value; });
document.addEventListener("htmx:afterSwap", () => {
  for (const box of document.querySelectorAll("[data-word]")) box.checked ||= box.value === word;
});
