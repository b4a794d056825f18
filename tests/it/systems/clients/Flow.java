import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** A whole flow, from a first call without a PSU to a payment that is signed: java Flow BASE CERTIFICATE KEY APPROVE */
class Flow {
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final String DOMESTIC = "/v1/payments/norwegian-domestic-credit-transfers";
    final Map<String, String> headers = new HashMap<>(Map.of("TPP-Redirect-URI", "https://tpp.example/back", "PSU-IP-Address", "192.0.2.7"));
    final String base, approve;
    final TppSignature signature;

    Flow(String[] args) throws Exception {
        base = args[0];
        signature = new TppSignature(args[1], args[2]);
        approve = args[3];
    }

    String call(String method, String path, String body, int status) throws Exception {
        if (!body.isEmpty()) headers.put("Content-Type", "application/json");
        var answer = CLIENT.send(signature.request(method, URI.create(base + path), headers, body), BodyHandlers.ofString());
        if (answer.statusCode() != status) throw new IllegalStateException(answer.statusCode() + " " + answer.body());
        headers.remove("Content-Type");
        return answer.body();
    }

    /** The PSU's part; gives the redirect. */
    String sca(String answer) throws Exception {
        var program = new ProcessBuilder(approve, "approve", member(answer, "scaRedirect\":\\{\"href")).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        return new String(program.getInputStream().readAllBytes()).trim();
    }

    /** The next text of a member. A program of yours would use a parser of JSON. */
    static String member(String json, String name) {
        var found = Pattern.compile("\"" + name + "\":\"([^\"]+)\"").matcher(json);
        if (!found.find()) throw new IllegalStateException(name + " in " + json);
        return found.group(1);
    }

    static String parameter(String redirect, String name) {
        var found = Pattern.compile("[?&]" + name + "=([^&]+)").matcher(redirect);
        if (!found.find()) throw new IllegalStateException(name + " in " + redirect);
        return found.group(1);
    }

    public static void main(String[] args) throws Exception {
        var flow = new Flow(args);
        String back = flow.sca(flow.call("GET", "/v1/accounts", "", 401));
        flow.headers.put("PSU-ID", parameter(back, "psu-id"));
        flow.headers.put("TPP-Session-ID", parameter(back, "tpp-session-id"));
        String accounts = flow.call("GET", "/v1/accounts", "", 200);
        flow.call("GET", "/v1/accounts/" + member(accounts, "resourceId") + "/balances", "", 200);
        String body = "{\"instructedAmount\":{\"amount\":\"10.00\",\"currency\":\"NOK\"},\"creditorName\":\"Eksempel AS\",\"creditorAccount\":{\"bban\":\"86011117947\",\"currency\":\"NOK\"},\"debtorAccount\":{\"bban\":\""
            + member(accounts, "bban") + "\",\"currency\":\"NOK\"}}";
        String payment = DOMESTIC + "/" + member(flow.call("POST", DOMESTIC, body, 201), "paymentId");
        flow.sca(flow.call("POST", payment + "/authorisations", "", 201));
        System.out.println("status " + member(flow.call("GET", payment + "/status", "", 200), "transactionStatus"));
    }
}
