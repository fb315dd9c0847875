--- How files and changes are called.
local M = {}

---@param path string
---@return string
function M.file(path)
  return vim.fn.fnamemodify(path, ':~:.')
end

--- The name of a buffer: the file comes last, because long names are cut from the left.
---@param review alongside.Review
---@param kind 'file'|'review'|'diff'
---@return string
function M.buffer(review, kind)
  return ('alongside://%d/%s (%s)'):format(review.id, (M.file(review.path):gsub('^/', '')), kind)
end

---@param review alongside.Review
---@return string
function M.describe(review)
  local conflicts = review.conflicts > 0 and (', conflicts: ' .. review.conflicts) or ''
  return ('%s (+%d −%d%s), %s'):format(
    M.file(review.path),
    review.size.added,
    review.size.removed,
    conflicts,
    require('alongside.bridge').agent_name(review.agent, review.agentVersion)
  )
end

return M
