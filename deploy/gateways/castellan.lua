-- The guard for HAProxy (docs/guard.md). haproxy.cfg loads it and names the address of Castellan.
local url = "http://" .. os.getenv("CASTELLAN") .. "/guard/check"

-- Headers of the guard, and those from which some upstreams read another request than the guard. With _ in place of -
-- they are the same variables to an upstream that speaks CGI or WSGI.
local removed = {}
for _, name in ipairs({ "castellan-user", "castellan-assertion", "castellan-grant", "x-original-url", "x-rewrite-url",
  "x-http-method-override", "x-http-method", "x-method-override" }) do
  removed[name] = true
end

core.register_action("castellan", { "http-req" }, function(txn)
  local asked, passed = txn.http:req_get_headers(), {}
  if not asked["host"] or asked["host"][0] == "" then txn:done(txn:reply { status = 421 }) end
  -- A later proxy would drop a header of the guard that the client names as one of its connection.
  for _, value in pairs(asked["connection"] or {}) do
    if value:lower():find("castellan", 1, true) then txn:done(txn:reply { status = 400 }) end
  end
  for name, values in pairs(asked) do
    passed[name] = {}
    for i = 0, #values do passed[name][#passed[name] + 1] = values[i] end
  end
  for _, name in ipairs({ "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade",
    "x-forwarded-method", "x-forwarded-uri", "x-forwarded-host" }) do
    passed[name] = nil
  end
  passed["x-original-method"] = { txn.sf:method() }
  passed["x-original-uri"] = { txn.sf:pathq() }
  passed["x-original-host"] = { asked["host"][0] }
  passed["x-forwarded-for"] = { txn.sf:src() }
  for name in pairs(asked) do
    if removed[name:gsub("_", "-")] then txn.http:req_del_header(name) end
  end
  local answer = core.httpclient():get { url = url, headers = passed, timeout = 10000 }
  local status = answer and answer.status or 503
  local got = answer and answer.headers or {}
  if status == 204 then
    for _, name in ipairs({ "castellan-user", "castellan-assertion" }) do
      if got[name] then txn.http:req_set_header(name, got[name][0]) end
    end
    return
  end
  if status ~= 401 and status ~= 403 then status = 503 end
  local reply = txn:reply { status = status, body = answer and answer.body or "" }
  for _, name in ipairs({ "content-type", "p-auth", "www-authenticate", "retry-after" }) do
    if got[name] then reply:add_header(name, got[name][0]) end
  end
  txn:done(reply)
end)
