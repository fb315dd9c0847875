// Creates elements. Strings only ever become text, never markup.

export type Child = Node | string | null | undefined | false;

type Attributes = Record<string, string | number | boolean | ((event: never) => void) | null | undefined>;

/** `on…` attributes are listeners; attributes that are `false` or `null` are skipped; string children become text. */
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

export function byId<Type extends HTMLElement = HTMLElement>(id: string): Type {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return found as Type;
}

/** Announces a sentence to screen readers, also if it is the same as the last one. */
export function announce(sentence: string): void {
  const region = byId("announcements");
  region.textContent = region.textContent === sentence ? `${sentence}\u00a0` : sentence;
}
