--- The changes that agents propose: a list of the pending ones, and a diff tab for each one that the user opens.
local M = {}

local bridge = require('alongside.bridge')
local names = require('alongside.names')
local opening = require('alongside.opening')
local preview = require('alongside.preview')
local text = require('alongside.text')

-- The status words of every front end, by the wire value of `outcome`.
local OUTCOMES = {
  closedByAgent = 'closed by the agent',
  orphaned = 'dropped because the agent disconnected',
  shutDown = 'rejected because the companion was shutting down',
}
--- A review as in `review/list`.
---@class alongside.Review
---@field id integer
---@field path string
---@field agent string
---@field agentVersion? string
---@field revision integer
---@field size { added: integer, removed: integer }
---@field conflicts integer

---@class alongside.Range
---@field start integer from 1
---@field count integer

--- A review as in `review/get`.
---@class alongside.FullReview: alongside.Review
---@field base? string
---@field proposal string
---@field draft string
---@field hunks { state: string, base: alongside.Range, draft: alongside.Range }[]
---@field notes string[]

---@class alongside.View
---@field id integer
---@field base string
---@field proposal string
---@field draft string the draft that the companion has
---@field tab integer
---@field file integer the buffer with the base
---@field buffer integer the buffer with the draft
---@field sharing integer how many edits the companion has not confirmed
---@field is_stale? boolean whether an update came while there were unconfirmed edits
---@field is_written? boolean whether the user accepted by writing
---@field is_closed? boolean

-- Both by id.
---@type table<integer, alongside.Review?>
local reviews = {}
---@type table<integer, alongside.View?>
local shown = {}

---@param message string
---@param level? integer
local function notify(message, level)
  require('alongside').notify(message, level)
end

--- The pending reviews, oldest first.
---@return alongside.Review[]
function M.pending()
  local list = vim.tbl_values(reviews) ---@type alongside.Review[]
  table.sort(list, function(one, other)
    return one.id < other.id
  end)
  return list
end

---@param id integer
---@return boolean
function M.is_pending(id)
  return reviews[id] ~= nil
end

---@return boolean
function M.is_any_open()
  return next(shown) ~= nil
end

--- The pending reviews that are not on the screen.
---@return alongside.Review[]
function M.unseen()
  return vim.tbl_filter(function(review)
    return not shown[review.id] and not (preview.id() == review.id and preview.is_visible())
  end, M.pending())
end

--- What would be accepted now.
---@param view alongside.View
---@return string
local function draft_of(view)
  local lines = vim.api.nvim_buf_get_lines(view.buffer, 0, -1, true)
  local base, proposal = text.split(view.base), text.split(view.proposal)
  -- With every hunk rejected, the line endings and the end of the file are the file's too.
  if vim.deep_equal(lines, base) and not vim.deep_equal(lines, proposal) then
    return view.base
  end
  return text.of(view.buffer)
end

---@type fun(view: alongside.View)
local reload

--- Sends the draft, so that it is what gets accepted in the agent's terminal too.
---@param view alongside.View
local function share(view)
  local draft = draft_of(view)
  if view.is_closed or draft == view.draft then
    return
  end
  view.draft, view.sharing = draft, view.sharing + 1
  bridge.request('review/edit', { review = view.id, content = draft }, function()
    view.sharing = view.sharing - 1
    if view.sharing == 0 and view.is_stale then
      reload(view)
    end
  end)
end

--- Shows what another front end, the agent or a change of the file did to the review.
function reload(view)
  if view.is_closed then
    return
  end
  -- Unconfirmed edits come after it; their response leads here again.
  view.is_stale = true
  if view.sharing > 0 or vim.bo[view.buffer].modified and view.draft ~= draft_of(view) then
    return
  end
  bridge.request('review/get', { review = view.id }, function(error, review)
    if error or view.is_closed or view.sharing > 0 then
      return
    end
    view.is_stale, view.base, view.proposal = false, review.base or '', review.proposal
    if review.draft ~= draft_of(view) then
      text.put(view.buffer, review.draft)
    end
    view.draft = review.draft
    vim.bo[view.file].modifiable = true
    text.put(view.file, view.base)
    vim.bo[view.file].modifiable = false
    vim.cmd.diffupdate()
  end)
end

--- Closes the diff tab of a review.
---@param view alongside.View
local function hide(view)
  view.is_closed, shown[view.id] = true, nil
  for _, buffer in ipairs({ view.buffer, view.file }) do
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

--- The view of a review, or the one in the current tab.
---@param id? integer
---@return alongside.View?
local function view_of(id)
  if id then
    return shown[id]
  end
  local tab = vim.api.nvim_get_current_tabpage()
  for _, view in pairs(shown) do
    if view.tab == tab then
      return view
    end
  end
end

---@param method 'review/accept'|'review/reject'
---@param review integer
---@param params table
local function decide(method, review, params)
  params.review = review
  bridge.request(method, params, function(error)
    if error then
      notify(error.message, vim.log.levels.WARN)
      local view = shown[review]
      if view and vim.api.nvim_buf_is_valid(view.buffer) then
        vim.bo[view.buffer].modified = true
      end
    end
  end)
end

--- Accepts the draft of a review, or of the one in this tab.
---@param id? integer
---@param even_if_empty? boolean
function M.accept(id, even_if_empty)
  local view = view_of(id)
  if view then
    decide('review/accept', view.id, { content = draft_of(view), evenIfEmpty = even_if_empty or nil })
  elseif preview.is_current() then
    decide('review/accept', assert(preview.id()), { evenIfEmpty = even_if_empty or nil })
  else
    notify('no change is open here; run :AlongsideReview')
  end
end

--- Rejects a review, or the one in this tab.
---@param id? integer
---@param reason? string for the agent, if it can receive one
function M.reject(id, reason)
  local view = view_of(id)
  local review = view and view.id or preview.is_current() and preview.id()
  if not review then
    return notify('no change is open here; run :AlongsideReview')
  end
  decide('review/reject', review, { reason = reason })
end

--- Accepts or rejects the hunk under the cursor and goes to the next.
---@param accept boolean
local function decide_hunk(accept)
  if not accept then
    pcall(vim.cmd.diffget)
  end
  pcall(vim.cmd.normal, { ']c', bang = true })
end

---@param buffer integer
local function map_keys(buffer)
  local keys = require('alongside').options().keys
  local function map(name, description, action)
    if keys and keys[name] then
      vim.keymap.set('n', keys[name], action, { buffer = buffer, desc = description })
    end
  end
  map('accept_hunk', 'Accept this hunk', function()
    decide_hunk(true)
  end)
  map('reject_hunk', 'Reject this hunk', function()
    decide_hunk(false)
  end)
  map('accept', 'Accept the change', function()
    M.accept()
  end)
  map('reject', 'Reject the change', function()
    M.reject()
  end)
end

---@param name string
---@param kind 'nofile'|'acwrite'
---@param content string
---@param syntax string
---@return integer
local function new_buffer(name, kind, content, syntax)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].buftype = kind
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  text.put(buffer, content)
  vim.bo[buffer].syntax = syntax
  return buffer
end

--- Writing the draft accepts the change, closing it rejects it.
---@param view alongside.View
local function watch_draft(view)
  local function on(event, action)
    vim.api.nvim_create_autocmd(event, { buffer = view.buffer, callback = action })
  end
  on('BufWriteCmd', function()
    vim.bo[view.buffer].modified = false
    view.is_written = true
    M.accept(view.id)
  end)
  on({ 'TextChanged', 'InsertLeave' }, function()
    view.is_written = false
    share(view)
  end)
  on('BufWipeout', function()
    if view.is_closed or vim.v.exiting ~= vim.NIL then
      return
    end
    if not view.is_written then
      decide('review/reject', view.id, {})
    end
    vim.schedule(function()
      hide(view)
    end)
  end)
end

---@param review alongside.FullReview
local function show(review)
  local syntax = vim.filetype.match({ filename = review.path }) or ''
  preview.close()
  -- Typed text must not end up in the draft.
  vim.cmd.stopinsert()
  vim.cmd.tabnew()
  local empty = vim.api.nvim_get_current_buf()
  ---@type alongside.View
  local view = {
    id = review.id,
    base = review.base or '',
    proposal = review.proposal,
    draft = review.draft,
    tab = vim.api.nvim_get_current_tabpage(),
    file = new_buffer(names.buffer(review, 'file'), 'nofile', review.base or '', syntax),
    buffer = new_buffer(names.buffer(review, 'review'), 'acwrite', review.draft, syntax),
    sharing = 0,
  }
  vim.bo[view.file].modifiable = false
  vim.api.nvim_win_set_buf(0, view.file)
  vim.api.nvim_buf_delete(empty, { force = true })
  vim.cmd.diffthis()
  vim.cmd('rightbelow vertical sbuffer ' .. view.buffer)
  vim.cmd.diffthis()
  -- Not `]c`: there is no `:normal` in a terminal, where the user may come from.
  local first = review.hunks[1] and review.hunks[1].draft.start or 1
  vim.api.nvim_win_set_cursor(0, { math.min(first, vim.api.nvim_buf_line_count(view.buffer)), 0 })
  shown[view.id] = view
  map_keys(view.buffer)
  watch_draft(view)
  for _, note in ipairs(review.notes) do
    notify(note)
  end
  require('alongside.statusline').changed()
end

--- Opens a review in a diff tab.
---@param id integer
function M.open(id)
  local function switch_to()
    local view = shown[id]
    if view then
      vim.api.nvim_set_current_tabpage(view.tab)
    end
    return view ~= nil
  end
  if switch_to() then
    return
  end
  bridge.request('review/get', { review = id }, function(error, review)
    if error then
      return notify(error.message, vim.log.levels.WARN)
    end
    -- Perhaps opened a second time before the first response.
    if not switch_to() then
      show(review)
    end
  end)
end

--- Opens a review, or the only pending one, or asks which one.
---@param id? integer
function M.choose(id)
  local pending = M.pending()
  local first = pending[1]
  if id then
    return M.open(id)
  elseif not first then
    return notify('no pending changes')
  elseif #pending == 1 then
    return M.open(first.id)
  end
  vim.ui.select(pending, { prompt = 'Pending changes', format_item = names.describe }, function(review)
    return review and M.open(review.id)
  end)
end

--- What the key does: goes to the open change, to the one to the side or to the oldest pending one; from there to the next.
function M.next()
  local pending, here = M.pending(), view_of()
  local after = vim.tbl_filter(function(review)
    return here ~= nil and review.id > here.id
  end, pending)
  local any = next(shown)
  local id = here and (after[1] or pending[1]).id or any or preview.id() or pending[1] and pending[1].id
  if not id then
    return notify('no pending changes')
  elseif here and id == here.id then
    return notify('no other pending changes')
  end
  M.open(id)
end

--- Fetches all pending reviews: after a restart, and when notifications were missed.
function M.refresh()
  bridge.request('review/list', nil, function(error, list)
    if error then
      return
    end
    reviews = {}
    for _, review in ipairs(list) do
      reviews[review.id] = review
    end
    for id, view in pairs(shown) do
      if reviews[id] then
        reload(view)
      else
        hide(view)
      end
    end
    opening.refresh()
    require('alongside.statusline').changed()
  end)
end

--- Follows the companion's notifications about reviews.
function M.listen()
  bridge.on('review/opened', function(review)
    reviews[review.id] = review
    opening.present(review)
    require('alongside.statusline').changed()
  end)
  bridge.on('review/changed', function(review)
    reviews[review.id] = review
    if shown[review.id] then
      reload(shown[review.id])
    end
    opening.update(review.id)
    require('alongside.statusline').changed()
  end)
  bridge.on('review/edited', function(edited)
    if shown[edited.review] then
      reload(shown[edited.review])
    end
    opening.update(edited.review)
  end)
  -- Follows `review/changed`, which reloads the view.
  bridge.on('review/rebased', function(rebased)
    if rebased.conflicts > 0 then
      notify('the file changed in the same place as a pending change; check the draft', vim.log.levels.WARN)
    end
  end)
  bridge.on('review/closed', function(closed)
    reviews[closed.review] = nil
    local view = shown[closed.review]
    if view then
      hide(view)
    end
    if closed.outcome == 'accepted' then
      require('alongside.writes').watch(closed.path)
    end
    notify(names.file(closed.path) .. ': ' .. (OUTCOMES[closed.outcome] or closed.outcome))
    opening.close(closed.review)
    require('alongside.statusline').changed()
  end)
  bridge.on('resync', M.refresh)
end

return M
