#!/bin/sh
# A fake companion: keeps what it receives in $ALONGSIDE_TEST/received, and has no reviews.
echo "a line for the log" >&2
while IFS= read -r line; do
  printf '%s\n' "$line" >>"$ALONGSIDE_TEST/received"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *review/list*) result='[]' ;;
    *agent/mention*) result='{"agent":{"name":"Claude Code"}}' ;;
    *) result='{}' ;;
  esac
  if [ -n "$id" ]; then
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
  fi
done
