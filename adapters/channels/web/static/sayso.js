"use strict";
// Everything here is a convenience: without it the page works by plain forms and links.
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const waiting = find("[data-waiting]");
  const decided = find("[data-decided]");
  const MOVED_MS = 600; // after cards moved, a press meant for another card may not count
  const LINGER_MS = 5000; // a card that was decided stays in its place for so long
  const SILENCE_MS = 25000; // the server speaks every ten seconds
  let offset = Number(document.body.dataset.now) - Date.now();
  let movedAt = -Infinity;
  let heardAt = Date.now();
  let source = null;
  let retry = 0;
  let hush = 0;

  // Time left

  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function inWords(ms) {
    if (ms <= 0) return "no time left";
    let seconds = Math.ceil(ms / 1000);
    const first = units.findIndex(([size]) => seconds >= size);
    const parts = [];
    for (const [size, name] of units.slice(first, first + 2)) {
      const count = Math.floor(seconds / size);
      seconds -= count * size;
      if (count) parts.push(`${count} ${name}`);
    }
    return `${parts.join(" ")} left`;
  }

  function tick() {
    for (const card of all("[data-deadline]")) {
      const left = Math.max(Number(card.dataset.deadline) - Date.now() - offset, 0);
      const text = find("[data-left]", card);
      const words = inWords(left);
      if (text.textContent !== words) text.textContent = words;
      text.classList.toggle("soon", left < 20000);
      find("[data-window]", card).value = left;
      if (card.classList.contains("over") !== left <= 0) {
        card.classList.toggle("over");
        movedAt = performance.now();
      }
    }
    if (source && Date.now() - heardAt > SILENCE_MS) lose();
  }

  // Cards

  function count() {
    const number = all(".card[data-waits]").length;
    if (waiting) {
      find("[data-number]").textContent = number;
      find("[data-nothing]").hidden = waiting.children.length > 0;
      find("[data-decided-section]").hidden = decided.children.length === 0;
      document.title = number ? `(${number}) Sayso` : "Sayso";
    }
  }

  function fromHtml(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return dress(template.content.firstElementChild);
  }

  // Keeps what the person has typed, opened and focused.
  function carryOver(from, to) {
    for (const old of all("[data-keep]", from)) {
      const fresh = find(`[data-keep="${old.dataset.keep}"]`, to);
      if (fresh && old.tagName === "DETAILS") fresh.open = old.open;
      if (fresh && old.tagName === "INPUT") fresh.value = old.value;
    }
  }

  function refocus(from, to) {
    const active = document.activeElement;
    if (!from.contains(active)) return () => {};
    const order = all("a, button, input, summary, [tabindex]", from).indexOf(active);
    const [start, end] = [active.selectionStart, active.selectionEnd];
    return () => {
      const same = to.hasAttribute("data-waits") === from.hasAttribute("data-waits");
      const target = same && all("a, button, input, summary, [tabindex]", to)[order];
      (target || to).focus({ preventScroll: true });
      if (target && target.type === "text") target.setSelectionRange(start, end);
    };
  }

  function swap(old, fresh) {
    carryOver(old, fresh);
    const restore = refocus(old, fresh);
    const height = old.offsetHeight;
    old.replaceWith(fresh);
    if (fresh.offsetHeight !== height) movedAt = performance.now();
    restore();
  }

  // What a card says, apart from the clock and what the person opened.
  function gist(card) {
    const copy = card.cloneNode(true);
    copy.classList.remove("fresh");
    for (const part of all("[data-left], [data-window]", copy)) part.remove();
    for (const part of all("[open]", copy)) part.removeAttribute("open");
    for (const part of all("[disabled]", copy)) part.removeAttribute("disabled");
    return copy.outerHTML;
  }

  function put({ id, html, waits, says }) {
    const fresh = fromHtml(html);
    const old = document.getElementById(`r-${id}`);
    if (old) {
      // The answer to a press may arrive after the events of the run that it began.
      if (Number(fresh.dataset.stage) < Number(old.dataset.stage)) return;
      const decidedNow = old.hasAttribute("data-waits") && !waits;
      if (gist(old) === gist(fresh)) return;
      swap(old, fresh);
      if (decidedNow) announce(says);
      if (!waits && waiting && waiting.contains(fresh)) setTimeout(() => retire(id), LINGER_MS);
    } else if (waiting) {
      fresh.classList.add("fresh");
      if (waits) {
        waiting.append(fresh);
        announce(says);
      } else {
        movedAt = performance.now();
        decided.prepend(fresh);
      }
    }
    count();
    tick();
  }

  function retire(id) {
    const card = document.getElementById(`r-${id}`);
    if (!card || card.hasAttribute("data-waits") || !waiting.contains(card)) return;
    const focused = document.activeElement === card;
    if ((!focused && card.contains(document.activeElement)) || card.matches(":hover")) {
      setTimeout(() => retire(id), LINGER_MS);
      return;
    }
    movedAt = performance.now();
    decided.prepend(card);
    if (focused) (find(".card[data-waits]", waiting) || card).focus({ preventScroll: true });
    count();
  }

  // All that is, after a gap in which things may have been missed.
  function reconcile(state) {
    const known = new Set([...state.waiting, ...state.decided].map((card) => card.id));
    for (const card of all("[data-waiting] .card[data-waits]")) {
      if (!known.has(card.dataset.id)) card.remove();
    }
    for (const card of [...state.waiting, ...state.decided.slice().reverse()]) put(card);
    count();
  }

  function announce(text) {
    find("[data-announce]").textContent = text;
  }

  function say(text, accepted) {
    const box = find("[data-said]");
    box.textContent = text;
    box.className = accepted ? "said toast" : "said toast refused";
    clearTimeout(hush);
    hush = setTimeout(() => box.classList.add("empty"), 8000);
  }

  // Deciding

  // The beginning of its command: which of several cards an answer was for.
  function title(card) {
    const text = find(".command code", card).textContent;
    return text.length > 80 ? `${text.slice(0, 79)}…` : text;
  }

  async function decide(form, button) {
    const card = form.closest(".card");
    const body = new URLSearchParams(new FormData(form));
    body.set("answer", button.value);
    const buttons = all("button", card);
    if (card.contains(document.activeElement)) card.focus({ preventScroll: true });
    for (const one of buttons) one.disabled = true;
    try {
      const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
      if (response.status === 401) {
        location.reload();
        return;
      }
      if (!response.ok) {
        say("Sayso did not take this answer. Load the page again, then answer.", false);
        return;
      }
      const answer = await response.json();
      say(`${answer.text}\n${title(card)}`, answer.accepted);
      if (answer.card) put(answer.card);
    } catch {
      const waits = document.getElementById(card.id)?.hasAttribute("data-waits");
      say(
        waits
          ? "No reply from Sayso. Your answer may have counted all the same: look at the card before you press again."
          : "No reply from Sayso came back, but it was decided: the card says what stands.",
        false,
      );
    } finally {
      for (const one of buttons) one.disabled = false;
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-decide]")) return;
    event.preventDefault();
    const button = event.submitter || find("button", form);
    if (performance.now() - movedAt < MOVED_MS) {
      say("The page had just moved, so this press did not count. Look again, then press.", false);
      return;
    }
    decide(form, button);
  });

  // Copying

  function dress(root) {
    for (const code of all("[data-copy]", root)) {
      code.setAttribute("role", "button");
      code.tabIndex = 0;
      code.title = "Copy";
    }
    for (const time of all("[data-at]", root)) {
      const at = new Date(Number(time.dataset.at));
      const day = at.toDateString() === new Date().toDateString() ? "" : `${at.toLocaleDateString()} `;
      time.title = at.toLocaleString();
      time.textContent = `at ${day}${at.toLocaleTimeString([], { timeStyle: "medium", hourCycle: "h23" })}`;
    }
    return root;
  }

  async function copy(code) {
    try {
      await navigator.clipboard.writeText(code.dataset.copy);
      code.classList.add("copied");
      announce("Copied");
      setTimeout(() => code.classList.remove("copied"), 1200);
    } catch {
      getSelection().selectAllChildren(code);
    }
  }

  document.addEventListener("click", (event) => {
    const code = event.target.closest("[data-copy]");
    if (code) copy(code);
  });

  // Keys: they move and explain, they never decide.

  function step(by) {
    const cards = all(".card");
    const at = cards.indexOf(document.activeElement && document.activeElement.closest(".card"));
    const next = at < 0 ? (by > 0 ? 0 : cards.length - 1) : Math.min(Math.max(at + by, 0), cards.length - 1);
    if (cards[next]) cards[next].focus();
  }

  function help() {
    const box = find("[data-help-box]");
    if (!box.open) box.showModal();
  }

  document.addEventListener("keydown", (event) => {
    const code = event.target.closest("[data-copy]");
    if (code && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      copy(code);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
    if (find("[data-help-box]").open) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
    if (event.key === "?") {
      event.preventDefault();
      help();
    }
  });

  // The connection

  function show(state, text) {
    const mark = find("[data-link]");
    mark.hidden = false;
    mark.className = `link-state ${state}`;
    find("[data-link-text]").textContent = text;
  }

  function hear(event) {
    heardAt = Date.now();
    const data = JSON.parse(event.data);
    if (data.now) offset = data.now - Date.now();
    if (data.troubles !== undefined) trouble(data.troubles);
    if (data.alarm !== undefined) warn(data.alarm);
    return data;
  }

  // What is wrong with other channels.
  function trouble(text) {
    const line = find("[data-troubles]");
    if (line.textContent !== text) line.textContent = text;
    line.hidden = !text;
  }

  // Which sessions are elevated.
  function warn({ text, full }) {
    const box = find("[data-alarm]");
    const words = find("[data-alarm-text]");
    const height = box.offsetHeight;
    if (words.textContent !== text) words.textContent = text;
    box.hidden = !text;
    box.classList.toggle("full", full);
    if (box.offsetHeight !== height) movedAt = performance.now();
  }

  function lose() {
    if (source) source.close();
    source = null;
    show("lost", "Not connected");
    find("[data-lost]").hidden = false;
    movedAt = performance.now();
    retry = Math.min(retry + 1, 5);
    setTimeout(again, retry * 1000);
  }

  async function again() {
    try {
      const response = await fetch("/session");
      if (response.status === 401) return location.reload();
    } catch {
      return lose();
    }
    connect();
  }

  function connect() {
    source = new EventSource("/events");
    heardAt = Date.now();
    source.addEventListener("error", lose, { once: true });
    source.addEventListener("beat", hear);
    source.addEventListener("card", (event) => put(hear(event)));
    source.addEventListener("state", (event) => {
      const state = hear(event);
      retry = 0;
      show("live", "Live");
      find("[data-lost]").hidden = true;
      reconcile(state);
    });
  }

  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  dress(document);
  const helpButton = find("[data-help]");
  helpButton.hidden = false;
  helpButton.addEventListener("click", help);
  tick();
  setInterval(tick, 500);
  connect();
})();
