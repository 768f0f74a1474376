// Fills the examples with the address of this server, and with languages that it translates.

import { callForJson } from "./api.js";

function fill(values) {
  for (const place of document.querySelectorAll("var")) place.textContent = values[place.dataset.name] ?? place.textContent;
}

for (const place of document.querySelectorAll("var")) place.dataset.name = place.textContent;
fill({ address: new URL(".", location), text: "Good morning.", source: "en", target: "de" });
const { models = [] } = await callForJson("v1/models?pageSize=1").catch(() => ({}));
if (models.length) fill({ source: models[0].sourceLanguageCodes[0], target: models[0].targetLanguageCodes[0] });
