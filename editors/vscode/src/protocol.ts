// The front-end protocol (docs/PROTOCOL.md): the page's types.

export type {
  AgentSummary,
  Cursor,
  Diagnostic,
  FileTarget,
  Focus,
  Hello,
  Hunk,
  HunkAction,
  HunkState,
  Notifications,
  ReviewSummary,
  ReviewTexts,
  Welcome,
} from "../../../web/src/generated/protocol";
export type { Doctor, Message, Outcome, Requester, Requests } from "../../../web/src/protocol";
