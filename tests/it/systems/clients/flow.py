"""A whole flow with the client that openapi-python-client makes: flow.py BASE CA CERTIFICATE KEY APPROVE

From a first call without a PSU to a payment that is signed. The folder has the generated package `client` and the interceptor of docs/tpp/signing.
APPROVE is the program that is the PSU.
"""

import subprocess
import sys
import uuid
from urllib.parse import parse_qs, urlsplit

from client import Client
from client.api.accounts import account_list, balance_list
from client.api.payments import payment_authorise, payment_create, payment_status
from client.models import Error, Payment
from client.models.payment_create_payment_product import PaymentCreatePaymentProduct as Product
from tpp_signature import TppSignature

base, authority, certificate, key, approve = sys.argv[1:]
client = Client(base, verify_ssl=authority, httpx_args={"auth": TppSignature(certificate, key)})
DOMESTIC = Product("norwegian-domestic-credit-transfers")


def call(operation, *path, **headers):
    headers = {"x_request_id": str(uuid.uuid4()), "tpp_redirect_uri": "https://tpp.example/back", **headers}
    return operation.sync(*path, client=client, **headers)


def sca(link):
    """The PSU's part; gives the parameters of the redirect."""
    redirect = subprocess.run([approve, "approve", link], check=True, capture_output=True, text=True).stdout
    return {name: values[0] for name, values in parse_qs(urlsplit(redirect.strip()).query).items()}


refused = call(account_list)
assert isinstance(refused, Error) and refused.reason == "sca-required", refused
back = sca(refused.field_links["scaRedirect"].href)
psu = {"psu_id": back["psu-id"], "tpp_session_id": back["tpp-session-id"], "psu_ip_address": "192.0.2.7"}

accounts = call(account_list, **psu).accounts
balances = call(balance_list, accounts[0].resource_id, **psu).balances
print("accounts", len(accounts), "balances", len(balances))

body = Payment.from_dict({
    "instructedAmount": {"amount": "10.00", "currency": "NOK"},
    "creditorName": "Eksempel AS",
    "creditorAccount": {"bban": accounts[1].bban, "currency": "NOK"},
    "debtorAccount": {"bban": accounts[0].bban, "currency": "NOK"},
})
created = call(payment_create, DOMESTIC, body=body, **psu)
started = call(payment_authorise, DOMESTIC, created.payment_id, **psu)
sca(started.field_links["scaRedirect"].href)
print("status", call(payment_status, DOMESTIC, created.payment_id, **psu).transaction_status.value)
