-- What a script has to check to do what Portvakt does, short of SCA, the calls of a day, registers, revocation and the rules of
-- payloads: date, certificate (chain and validity, judged when it is first seen), role, every part of Signature, digest, replay.
local x509 = require "openssl.x509"
local store = require "openssl.x509.store"
local digest = require "openssl.digest"
local certificates = require("resty.lrucache").new(512)
local M = {}

local anchors = store.new()
for _, file in ipairs({ "@ANCHOR@", "@ISSUING@" }) do
  local pem = assert(io.open(file)):read("*a")
  anchors:add(x509.new(pem, "PEM"))
end

local function refuse(status, code, text)
  ngx.status = status
  ngx.header["Content-Type"] = "application/json"
  ngx.say('{"tppMessages":[{"category":"ERROR","code":"' .. code .. '","text":"' .. text .. '"}]}')
  return ngx.exit(status)
end

local function certificate_of(header)
  local known = certificates:get(header)
  if known then return known end
  local der = ngx.decode_base64(header)
  local ok, read = pcall(x509.new, der or "", "DER")
  if not ok then return nil end
  known = {
    key = read:getPublicKey(),
    serial = read:getSerial():toHex():gsub("^0+", ""):upper(),
    trusted = anchors:verify(read) and true or false,
    -- The names of the roles stand in the PSD2 statement as UTF8String.
    account_information = der:find("PSP_AI", 1, true) ~= nil,
    payment_initiation = der:find("PSP_PI", 1, true) ~= nil,
    id = tostring(read:getSubject()),
  }
  known.from, known.to = read:getLifetime()
  certificates:set(header, known, 300)
  return known
end

function M.run()
  local headers = ngx.req.get_headers(50)
  local header = headers["tpp-signature-certificate"]
  local given = headers["signature"]
  local id, date = headers["x-request-id"], headers["date"]
  if not header then return refuse(401, "CERTIFICATE_MISSING", "TPP-Signature-Certificate is missing") end
  if not given then return refuse(401, "SIGNATURE_MISSING", "Signature is missing") end
  if not id or not ngx.re.match(id, "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "ijo") then
    return refuse(400, "FORMAT_ERROR", "X-Request-ID is no UUID")
  end
  local time = date and ngx.parse_http_time(date)
  local now = ngx.time()
  if not time or math.abs(now - time) > 60 then return refuse(400, "FORMAT_ERROR", "Date is too old") end

  local certificate = certificate_of(header)
  if not certificate then return refuse(400, "FORMAT_ERROR", "the certificate cannot be read") end
  if not certificate.trusted then return refuse(403, "FORBIDDEN", "the certificate does not chain to an anchor") end
  if now < certificate.from or now > certificate.to then return refuse(403, "FORBIDDEN", "the certificate is not valid now") end
  local path = ngx.var.uri
  local may
  if path:find("^/v1/payments/") then may = certificate.payment_initiation else may = certificate.account_information end
  if not may then return refuse(403, "FORBIDDEN", "the role is missing") end

  local parts = {}
  for name, value in given:gmatch('(%a+)="([^"]*)"') do
    if parts[name] then return refuse(401, "SIGNATURE_INVALID", "a part stands twice") end
    parts[name] = value
  end
  local serial = parts.keyId and parts.keyId:match("^SN=(%x+),CA=.")
  if not serial or serial:gsub("^0+", ""):upper() ~= certificate.serial then
    return refuse(401, "SIGNATURE_INVALID", "keyId names another certificate")
  end
  if parts.algorithm and parts.algorithm ~= "rsa-sha256" then return refuse(401, "SIGNATURE_INVALID", "algorithm") end
  local raw = ngx.decode_base64(parts.signature or "")
  if not raw or not parts.headers then return refuse(401, "SIGNATURE_INVALID", "a part is missing") end
  local lines, covered = {}, {}
  for name in parts.headers:gmatch("%S+") do
    name = name:lower()
    local value = headers[name]
    if name == "(request-target)" then value = ngx.req.get_method():lower() .. " " .. ngx.var.request_uri end
    if not value or covered[name] then return refuse(401, "SIGNATURE_INVALID", name .. " is signed and not there") end
    covered[name] = true
    lines[#lines + 1] = name .. ": " .. value
  end
  for _, name in ipairs({ "date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri" }) do
    if headers[name] and not covered[name] then return refuse(401, "SIGNATURE_INVALID", name .. " is not signed") end
  end
  local hash = digest.new("sha256")
  hash:update(table.concat(lines, "\n"))
  local ok, holds = pcall(certificate.key.verify, certificate.key, raw, hash)
  if not ok or not holds then return refuse(401, "SIGNATURE_INVALID", "it does not verify") end

  if ngx.req.get_method() ~= "GET" then
    ngx.req.read_body()
    local body = ngx.req.get_body_data() or ""
    local sum = digest.new("sha256")
    sum:update(body)
    if headers["digest"] ~= "SHA-256=" .. ngx.encode_base64(sum:final()) then
      return refuse(400, "FORMAT_ERROR", "the body is not what Digest says")
    end
  end

  if not ngx.shared.seen:add(certificate.id .. id, true, 180) then
    return refuse(409, "CONFLICT", "X-Request-ID was used before")
  end
  ngx.req.set_header("Gateway-Tpp-Id", certificate.id)
end

return M
