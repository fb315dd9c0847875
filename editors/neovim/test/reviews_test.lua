-- Reviews that change while they are open.
local tests = {}

local function review(fields)
  return vim.tbl_extend('force', {
    id = 1,
    path = '/tmp/reviewed.txt',
    agent = 'An Agent',
    agentVersion = '1.0',
    session = 's',
    revision = 1,
    version = 1,
    newFile = false,
    edited = false,
    size = { added = 1, removed = 1 },
    conflicts = 0,
    opened = 0,
    base = 'one\n',
    proposal = 'two\n',
    draft = 'two\n',
    hunks = { { draft = { start = 1, count = 1 } } },
    notes = {},
  }, fields)
end

local function show(fake)
  fake.results['review/get'] = review({})
  fake.open('a.txt', { 'text' })
  fake.notify('review/opened', review({}))
  vim.cmd('AlongsideReview')
  assert(vim.bo.buftype == 'acwrite')
  return vim.api.nvim_get_current_buf()
end

local function lines(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), ',')
end

function tests.every_outcome_is_shown_in_the_words_of_all_front_ends()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  for outcome, words in pairs({
    accepted = 'accepted',
    rejected = 'rejected',
    closedByAgent = 'closed by the agent',
    orphaned = 'dropped because the agent disconnected',
    shutDown = 'rejected because the companion was shutting down',
  }) do
    fake.notices = {}
    fake.notify('review/closed', { review = 1, path = '/tmp/reviewed.txt', outcome = outcome })
    assert(fake.notices[1] == 'alongside: /tmp/reviewed.txt: ' .. words, vim.inspect(fake.notices))
  end
end

function tests.new_change_is_announced_with_the_agent_and_its_version()
  local fake = require('fake_companion')
  vim.g.alongside = { open = 'notify' }
  fake.open('a.txt', { 'text' })
  fake.notify('review/opened', review({}))
  assert(fake.has_notice('reviewed.txt (+1 −1), An Agent 1.0; review with <F8>') == 1, vim.inspect(fake.notices))
end

function tests.edit_elsewhere_is_shown()
  local fake = require('fake_companion')
  local draft = show(fake)
  fake.results['review/get'] = review({ version = 2, draft = 'elsewhere\n' })
  fake.notify('review/edited', { review = 1, version = 2, changes = {}, hunks = {} })
  assert(lines(draft) == 'elsewhere', lines(draft))
end

function tests.changed_file_is_shown_after_an_edit_was_confirmed()
  local fake = require('fake_companion')
  local draft = show(fake)
  fake.results['review/edit'] = false
  vim.api.nvim_buf_set_lines(draft, 0, -1, true, { 'mine' })
  fake.event('TextChanged')
  fake.results['review/get'] = review({ version = 3, base = 'new base\n', draft = 'mine\n' })
  fake.notify('review/changed', review({ version = 2 }))
  local file = vim.fn.winbufnr(1)
  assert(lines(draft) == 'mine' and lines(file) == 'one')
  local edit = vim.tbl_filter(function(message)
    return message.method == 'review/edit'
  end, fake.received)[1]
  fake.send({ id = edit.id, result = {} })
  assert(lines(draft) == 'mine' and lines(file) == 'new base', lines(file))
end

return tests
