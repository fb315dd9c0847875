// Makes elements. Text only ever becomes text: there is no way to markup from here.

export type Child = Node | string | null | undefined | false;

type Attributes = Record<string, string | number | boolean | ((event: never) => void) | null | undefined>;

/** An element with attributes (`on…` are listeners, `false` and `null` leave out) and children (strings become text). */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key.slice(2), value as EventListener);
    else if (key === "class") made.className = String(value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return made;
}

export function replaceChildren(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
}

/** The element of the page with this id. */
export function byId<Type extends HTMLElement = HTMLElement>(id: string): Type {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return found as Type;
}

/** A short sentence for screen readers; the same sentence twice is said twice. */
export function announce(sentence: string): void {
  const region = byId("announcements");
  region.textContent = region.textContent === sentence ? `${sentence}\u00a0` : sentence;
}
