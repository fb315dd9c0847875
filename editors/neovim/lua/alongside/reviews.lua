--- The changes that agents propose: a list of those that wait, and a diff tab for each that the person opens.
local M = {}

local bridge = require('alongside.bridge')
local text = require('alongside.text')

-- By the number of the review: what the companion said of it, and how it is shown.
local reviews, shown = {}, {}

local function notify(message, level)
  require('alongside').notify(message, level)
end

local function short(path)
  return vim.fn.fnamemodify(path, ':~:.')
end

--- The reviews that wait, oldest first.
function M.waiting()
  local list = vim.tbl_values(reviews)
  table.sort(list, function(one, other)
    return one.id < other.id
  end)
  return list
end

local function describe(review)
  local conflicts = review.conflicts > 0 and (', conflicts: ' .. review.conflicts) or ''
  return ('%s (+%d −%d%s), %s'):format(short(review.path), review.size.added, review.size.removed, conflicts, review.agent)
end

local function same(one, other)
  return vim.deep_equal(one, other)
end

--- What would be accepted now.
local function draft_of(view)
  local lines = vim.api.nvim_buf_get_lines(view.buffer, 0, -1, true)
  local base, proposal = text.split(view.base), text.split(view.proposal)
  -- All hunks are rejected: then the ends of lines and of the file are the file's too.
  if same(lines, base) and not same(lines, proposal) then
    return view.base
  end
  return text.of(view.buffer)
end

--- Lets the companion know the draft, so that it counts when the person says yes in the agent's terminal.
local function share(view)
  local draft = draft_of(view)
  if view.over or draft == view.draft then
    return
  end
  view.draft, view.sharing = draft, view.sharing + 1
  bridge.request('review/edit', { review = view.id, content = draft }, function()
    view.sharing = view.sharing - 1
  end)
end

--- Takes in what somebody else did to the review.
local function reload(view)
  if view.over or view.sharing > 0 or vim.bo[view.buffer].modified and view.draft ~= draft_of(view) then
    return
  end
  bridge.request('review/get', { review = view.id }, function(error, review)
    if error or view.over or view.sharing > 0 then
      return
    end
    view.base, view.proposal = review.base or '', review.proposal
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

--- Closes what shows a review.
local function hide(view)
  view.over, shown[view.id] = true, nil
  for _, buffer in ipairs({ view.buffer, view.file }) do
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

--- The view in the current tab, or of a review.
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

local function decide(method, view, params)
  params.review = view.id
  bridge.request(method, params, function(error)
    if error then
      notify(error.message, vim.log.levels.WARN)
      if shown[view.id] == view and vim.api.nvim_buf_is_valid(view.buffer) then
        vim.bo[view.buffer].modified = true
      end
    end
  end)
end

--- Accepts the change in this tab, as it stands. `insist` accepts even an emptied text.
function M.accept(id, insist)
  local view = view_of(id)
  if not view then
    return notify('no change is open here; run :AlongsideReview')
  end
  decide('review/accept', view, { content = draft_of(view), evenIfEmpty = insist or nil })
end

--- Rejects the change in this tab.
function M.reject(id)
  local view = view_of(id)
  if not view then
    return notify('no change is open here; run :AlongsideReview')
  end
  decide('review/reject', view, {})
end

--- Takes or leaves the hunk under the cursor, and goes to the next.
local function settle_hunk(take)
  if not take then
    pcall(vim.cmd.diffget)
  end
  pcall(vim.cmd.normal, { ']c', bang = true })
end

local function map_keys(buffer)
  local keys = require('alongside').options().keys
  local actions = {
    accept_hunk = { 'Accept this hunk', function() settle_hunk(true) end },
    reject_hunk = { 'Reject this hunk', function() settle_hunk(false) end },
    accept = { 'Accept the change', function() M.accept() end },
    reject = { 'Reject the change', function() M.reject() end },
  }
  for name, action in pairs(actions) do
    if keys and keys[name] then
      vim.keymap.set('n', keys[name], action[2], { buffer = buffer, desc = action[1] })
    end
  end
end

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

--- The proposal: editable, accepted by writing it, rejected by closing it.
local function watch_proposal(view)
  local function on(event, action)
    vim.api.nvim_create_autocmd(event, { buffer = view.buffer, callback = action })
  end
  on('BufWriteCmd', function()
    vim.bo[view.buffer].modified = false
    view.written = true
    M.accept(view.id)
  end)
  on({ 'TextChanged', 'InsertLeave' }, function()
    view.written = false
    share(view)
  end)
  on('BufWipeout', function()
    if view.over or vim.v.exiting ~= vim.NIL then
      return
    end
    if not view.written then
      decide('review/reject', view, {})
    end
    vim.schedule(function()
      hide(view)
    end)
  end)
end

local function show(review)
  local syntax = vim.filetype.match({ filename = review.path }) or ''
  local view = { id = review.id, base = review.base or '', proposal = review.proposal, draft = review.draft, sharing = 0 }
  local name = 'alongside://' .. review.id .. review.path
  vim.cmd.tabnew()
  local empty = vim.api.nvim_get_current_buf()
  view.tab = vim.api.nvim_get_current_tabpage()
  view.file = new_buffer(name .. ' (file)', 'nofile', view.base, syntax)
  view.buffer = new_buffer(name, 'acwrite', review.draft, syntax)
  vim.bo[view.file].modifiable = false
  vim.api.nvim_win_set_buf(0, view.file)
  vim.api.nvim_buf_delete(empty, { force = true })
  vim.cmd.diffthis()
  vim.cmd('rightbelow vertical sbuffer ' .. view.buffer)
  vim.cmd.diffthis()
  vim.cmd.normal({ 'gg', bang = true })
  if #review.hunks > 0 and (review.hunks[1].draft.start or 1) > 1 then
    pcall(vim.cmd.normal, { ']c', bang = true })
  end
  shown[view.id] = view
  map_keys(view.buffer)
  watch_proposal(view)
  for _, note in ipairs(review.notes) do
    notify(note)
  end
end

--- Shows a review in a tab of its own.
function M.open(id)
  if shown[id] then
    return vim.api.nvim_set_current_tabpage(shown[id].tab)
  end
  bridge.request('review/get', { review = id }, function(error, review)
    if error then
      return notify(error.message, vim.log.levels.WARN)
    end
    -- Asked for twice, before the first answer.
    if shown[id] then
      return vim.api.nvim_set_current_tabpage(shown[id].tab)
    end
    show(review)
  end)
end

--- Shows the review that waits, or a list if there are several.
function M.choose(id)
  local waiting = M.waiting()
  if id or #waiting == 1 then
    return M.open(id or waiting[1].id)
  end
  if #waiting == 0 then
    return notify('no pending changes')
  end
  vim.ui.select(waiting, { prompt = 'Pending changes', format_item = describe }, function(review)
    return review and M.open(review.id)
  end)
end

--- Asks again for all that waits: after a restart, and when notifications were missed.
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
    require('alongside.statusline').changed()
  end)
end

--- Shows in open windows what the agent has written, once it has.
local function watch_file(path)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(path, '*?[]{}\\,~$^') .. '$')
  local watcher = buffer > 0 and vim.uv.new_fs_event()
  if not watcher then
    return
  end
  local function stop()
    if not watcher:is_closing() then
      watcher:close()
    end
  end
  watcher:start(vim.fs.dirname(path), {}, vim.schedule_wrap(function()
    if vim.api.nvim_buf_is_valid(buffer) and not vim.bo[buffer].modified then
      vim.cmd.checktime(buffer)
    end
  end))
  vim.defer_fn(stop, 10000)
end

--- Hears of reviews.
function M.listen()
  bridge.on('review/opened', function(review)
    reviews[review.id] = review
    notify(describe(review) .. '; review with :AlongsideReview')
    require('alongside.statusline').changed()
  end)
  bridge.on('review/changed', function(review)
    reviews[review.id] = review
    if shown[review.id] then
      reload(shown[review.id])
    end
    require('alongside.statusline').changed()
  end)
  bridge.on('review/edited', function(edited)
    if shown[edited.review] then
      reload(shown[edited.review])
    end
  end)
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
      watch_file(closed.path)
    end
    notify(short(closed.path) .. ': ' .. closed.outcome:gsub('%u', ' %0'):lower())
    require('alongside.statusline').changed()
  end)
  bridge.on('resync', M.refresh)
end

return M
