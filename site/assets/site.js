// The menu of small screens, and the search: every word has to be on a page, and counts more in its title.
(() => {
  const menu = document.querySelector(".menu"), nav = document.querySelector("nav");
  const narrow = matchMedia("(max-width: 60rem)");
  const place = () => narrow.matches ? menu.append(nav) : menu.after(nav);
  narrow.addEventListener("change", place);
  place();
  nav.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"});
  window.scrollTo(0, 0);

  const base = new URL(".", document.currentScript.src);
  const input = document.querySelector(".search input"), list = document.querySelector(".search ul");
  const load = () => {
    if (window.searchIndex || document.querySelector("#search-index")) return;
    const index = document.createElement("script");
    index.id = "search-index";
    index.src = new URL("search-index.js", base);
    index.onload = find;
    document.head.append(index);
  };
  const count = (text, word) => text.split(word).length - 1;
  function find() {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word.length > 1);
    const found = !words.length ? [] : (window.searchIndex ?? []).flatMap(page => {
      const title = page.title.toLowerCase(), text = page.text.toLowerCase();
      let score = 0;
      for (const word of words) {
        const of = 20 * count(title, word) + Math.min(10, count(text, word));
        if (!of) return [];
        score += of;
      }
      const at = Math.max(0, text.indexOf(words.find(word => text.includes(word)) ?? "") - 40);
      score /= 5000 + text.length; // a long page has every word
      return [{page, score, part: page.text.slice(at, at + 140)}];
    }).sort((a, b) => b.score - a.score).slice(0, 8);
    list.replaceChildren(...found.map(({page, part}) => {
      const item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
      link.href = new URL(page.url, base);
      link.textContent = page.title;
      small.textContent = "… " + part + " …";
      link.append(small);
      item.append(link);
      return item;
    }));
    list.hidden = !found.length;
  }
  input.addEventListener("focus", load);
  input.addEventListener("input", find);
  input.addEventListener("keydown", event => {
    if (event.key === "Escape") { input.value = ""; find(); }
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
})();
