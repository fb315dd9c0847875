// Link targets. Only web and mail links are allowed, and their host is shown.

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

export interface Target {
  readonly href: string;
  /** The host or mail address, as shown next to the link. */
  readonly shown: string;
}

/** The target of a link, if it is allowed. */
export function target(written: string): Target | null {
  const text = written.trim();
  let url: URL;
  try {
    url = new URL(/^www\./i.test(text) ? `https://${text}` : text);
  } catch {
    return null;
  }
  if (!ALLOWED.has(url.protocol)) return null;
  // User names in URLs are used to imitate another host.
  if (url.protocol !== "mailto:" && (url.username || url.password)) return null;
  return { href: url.href, shown: url.protocol === "mailto:" ? url.pathname : url.host };
}
