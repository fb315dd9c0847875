-- Lines for an agent's prompt.
local tests = {}

function tests.lines_are_the_selection_when_they_are_sent()
  local fake = require('fake_companion')
  fake.results['agent/mention'] = { agent = { name = 'Claude Code', version = '2.1.325' } }
  local path = fake.open('a.txt', { 'one', 'two', 'three' })
  fake.settle()
  local before = #fake.params('context/focus')
  vim.cmd('2,3AlongsideSend')
  local focus = fake.params('context/focus')[before + 1]
  assert(focus.path == path and focus.selectedText == 'two\nthree', vim.inspect(focus))
  assert(focus.selectionStart.line == 2 and focus.cursor.line == 3 and focus.cursor.character == 6)
  assert(#fake.params('agent/mention') == 1)
  assert(fake.notices[#fake.notices]:find('sent to Claude Code'), vim.inspect(fake.notices))
  vim.cmd('AlongsideSend')
  focus = fake.params('context/focus')[before + 2]
  assert(focus.selectedText == nil and #fake.params('agent/mention') == 2, vim.inspect(focus))
end

return tests
