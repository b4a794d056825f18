-- The least that a script can do: one RSA-2048 signature over the headers that are always signed. The key of a certificate is kept.
local x509 = require "openssl.x509"
local digest = require "openssl.digest"
local keys = require("resty.lrucache").new(512)
local M = {}

local function key_of(certificate)
  local key = keys:get(certificate)
  if key then return key end
  local der = ngx.decode_base64(certificate)
  local ok, read = pcall(x509.new, der or "", "DER")
  if not ok then return nil end
  key = read:getPublicKey()
  keys:set(certificate, key, 300)
  return key
end

local function refuse(code)
  ngx.status = 401
  ngx.header["Content-Type"] = "application/json"
  ngx.say('{"tppMessages":[{"category":"ERROR","code":"' .. code .. '"}]}')
  return ngx.exit(401)
end

function M.run()
  local headers = ngx.req.get_headers(50)
  local certificate, signature = headers["tpp-signature-certificate"], headers["signature"]
  if not certificate then return refuse("CERTIFICATE_MISSING") end
  if not signature then return refuse("SIGNATURE_MISSING") end
  local raw = ngx.decode_base64(signature:match('signature="([^"]+)"') or "")
  local key = raw and key_of(certificate)
  if not key then return refuse("SIGNATURE_INVALID") end
  local text = "date: " .. (headers["date"] or "")
  if headers["digest"] then text = text .. "\ndigest: " .. headers["digest"] end
  text = text .. "\nx-request-id: " .. (headers["x-request-id"] or "") .. "\npsu-id: " .. (headers["psu-id"] or "") ..
         "\ntpp-redirect-uri: " .. (headers["tpp-redirect-uri"] or "")
  local hash = digest.new("sha256")
  hash:update(text)
  local ok, holds = pcall(key.verify, key, raw, hash)
  if not ok or not holds then return refuse("SIGNATURE_INVALID") end
end

return M
