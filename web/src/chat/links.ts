// Where a link may lead. Only to the web and to mail, never to a script or a file, and where it leads can be read.

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

export interface Target {
  readonly href: string;
  /** What a person is shown of it. */
  readonly shown: string;
}

/** The target of a link, if it may be followed. */
export function target(written: string): Target | null {
  const text = written.trim();
  let url: URL;
  try {
    url = new URL(/^www\./i.test(text) ? `https://${text}` : text);
  } catch {
    return null;
  }
  if (!ALLOWED.has(url.protocol)) return null;
  // A name before the host pretends to be the host.
  if (url.protocol !== "mailto:" && (url.username || url.password)) return null;
  return { href: url.href, shown: url.protocol === "mailto:" ? url.pathname : url.host };
}
