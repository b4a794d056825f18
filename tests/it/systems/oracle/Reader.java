import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Reads what the gateway admits, as Java does: Jackson, Gson, URI. See reader.py for lines and arguments. */
public final class Reader {
    public static class Money {
        public String amount, currency;
    }

    public static class Account {
        public String iban, bban, currency;
    }

    public static class Address {
        public String street, buildingNumber, postalCode, city, country;
    }

    public static class Payment {
        public Money instructedAmount;
        public String creditorName, creditorAgent, remittanceInformationUnstructured;
        public Account creditorAccount, debtorAccount;
        public Address creditorAddress;
        public String purposeCode, requestedExecutionDate, regulatoryReportingCode, regulatoryReportingInformation;
        public List<String> paymentIds;
    }

    private interface Read {
        Map<String, List<String>> read() throws Exception;
    }

    private static final Gson GSON = new Gson();
    private static final ObjectMapper JACKSON = new ObjectMapper();
    private static final ObjectMapper BEANS =
            JsonMapper.builder()
                    .enable(MapperFeature.ACCEPT_CASE_INSENSITIVE_PROPERTIES)
                    .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .build();

    private static String[] paths;
    private static String[] names;

    public static void main(String[] arguments) throws Exception {
        paths = arguments[0].split(",");
        names = arguments[1].split(",");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int tab = line.indexOf('\t');
            out.println(GSON.toJson(readers(line.substring(0, tab), Base64.getDecoder().decode(line.substring(tab + 1)))));
        }
        out.flush();
    }

    private static List<List<Object>> readers(String kind, byte[] raw) {
        String text = new String(raw, StandardCharsets.UTF_8);
        List<List<Object>> readers = new ArrayList<>();
        switch (kind) {
            case "body":
                add(readers, "Jackson, a tree", () -> tree(JACKSON.readTree(raw)));
                add(readers, "Jackson, a bean without case", () -> bean(BEANS.readValue(raw, Payment.class)));
                add(readers, "Gson, a tree", () -> tree(JsonParser.parseString(text)));
                add(readers, "Gson, a bean", () -> bean(GSON.fromJson(text, Payment.class)));
                break;
            case "query":
                for (boolean last : new boolean[] {false, true}) {
                    String which = last ? ", the last wins" : ", the first wins";
                    add(readers, "URLDecoder" + which, () -> parameters(text, "&", true, last));
                    add(readers, "URLDecoder, split at ;" + which, () -> parameters(text, "[&;]", true, last));
                    add(readers, "URI.getQuery" + which, () -> parameters(new URI("/?" + text).getQuery(), "[&;]", false, last));
                    add(readers, "decoded first" + which, () -> parameters(decode(text), "[&;]", false, last));
                }
                break;
            case "path":
                add(readers, "URI", () -> segments(new URI(text).getPath()));
                add(readers, "URI, normalised", () -> segments(new URI(text).normalize().getPath()));
                add(readers, "URLDecoder", () -> segments(decode(text.replace("+", "%2B"))));
                break;
            case "content-type":
                add(readers, "HttpClient's pattern", () -> contentType(text));
                break;
            default:
                add(readers, "URI", () -> host(new URI(text)));
        }
        return readers;
    }

    private static void add(List<List<Object>> readers, String name, Read read) {
        Map<String, List<String>> found;
        try {
            found = read.read();
        } catch (Exception fault) {
            found = Map.of("fault", List.of(fault.toString()));
        }
        readers.add(List.of("Java, " + name, found));
    }

    private static Map<String, List<String>> tree(JsonNode root) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (String path : paths) {
            JsonNode at = root.at("/" + path.replace('.', '/'));
            if (at.isTextual()) {
                found.put(path, List.of(at.textValue()));
            } else if (path.equals("paymentIds") && at.isArray()) {
                List<String> ids = new ArrayList<>();
                at.forEach(id -> {
                    if (id.isTextual()) ids.add(id.textValue());
                });
                found.put(path, ids);
            }
        }
        return found;
    }

    private static Map<String, List<String>> tree(JsonElement root) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (String path : paths) {
            JsonElement at = root;
            for (String name : path.split("\\.")) {
                at = at != null && at.isJsonObject() ? at.getAsJsonObject().get(name) : null;
            }
            if (isText(at)) {
                found.put(path, List.of(at.getAsString()));
            } else if (path.equals("paymentIds") && at != null && at.isJsonArray()) {
                List<String> ids = new ArrayList<>();
                at.getAsJsonArray().forEach(id -> {
                    if (isText(id)) ids.add(id.getAsString());
                });
                found.put(path, ids);
            }
        }
        return found;
    }

    private static boolean isText(JsonElement at) {
        return at != null && at.isJsonPrimitive() && at.getAsJsonPrimitive().isString();
    }

    private static Map<String, List<String>> bean(Payment read) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        if (read.instructedAmount != null) {
            put(found, "instructedAmount.amount", read.instructedAmount.amount);
            put(found, "instructedAmount.currency", read.instructedAmount.currency);
        }
        account(found, "creditorAccount.", read.creditorAccount);
        account(found, "debtorAccount.", read.debtorAccount);
        if (read.creditorAddress != null) {
            put(found, "creditorAddress.street", read.creditorAddress.street);
            put(found, "creditorAddress.buildingNumber", read.creditorAddress.buildingNumber);
            put(found, "creditorAddress.postalCode", read.creditorAddress.postalCode);
            put(found, "creditorAddress.city", read.creditorAddress.city);
            put(found, "creditorAddress.country", read.creditorAddress.country);
        }
        put(found, "creditorName", read.creditorName);
        put(found, "creditorAgent", read.creditorAgent);
        put(found, "remittanceInformationUnstructured", read.remittanceInformationUnstructured);
        put(found, "purposeCode", read.purposeCode);
        put(found, "requestedExecutionDate", read.requestedExecutionDate);
        put(found, "regulatoryReportingCode", read.regulatoryReportingCode);
        put(found, "regulatoryReportingInformation", read.regulatoryReportingInformation);
        if (read.paymentIds != null) {
            found.put("paymentIds", read.paymentIds.stream().map(String::valueOf).collect(Collectors.toList()));
        }
        return found;
    }

    private static void account(Map<String, List<String>> found, String path, Account account) {
        if (account != null) {
            put(found, path + "iban", account.iban);
            put(found, path + "bban", account.bban);
            put(found, path + "currency", account.currency);
        }
    }

    private static void put(Map<String, List<String>> found, String path, String text) {
        if (text != null) {
            found.put(path, List.of(text));
        }
    }

    private static String decode(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    private static Map<String, List<String>> parameters(String text, String at, boolean encoded, boolean last) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (String piece : text == null ? new String[0] : text.split(at)) {
            String[] halves = piece.split("=", 2);
            String name = encoded ? decode(halves[0]) : halves[0];
            String value = halves.length < 2 ? "" : encoded ? decode(halves[1]) : halves[1];
            if (Arrays.asList(names).contains(name) && (last || !found.containsKey(name))) {
                found.put(name, List.of(value));
            }
        }
        return found;
    }

    private static Map<String, List<String>> segments(String path) {
        String[] segments = path.split("/", -1);
        return Map.of("segments", Arrays.asList(segments).subList(1, segments.length));
    }

    /** As java.net.http and servlets split it: at semicolons, then at the first equals sign. The last charset wins. */
    private static Map<String, List<String>> contentType(String text) {
        String[] parts = text.split(";");
        Map<String, List<String>> found = new LinkedHashMap<>();
        found.put("media", List.of(parts[0].trim().toLowerCase()));
        for (int at = 1; at < parts.length; at++) {
            String[] pair = parts[at].split("=", 2);
            if (pair.length == 2 && pair[0].trim().equalsIgnoreCase("charset")) {
                String charset = pair[1].trim().replace("\"", "").toLowerCase();
                found.put("charset", List.of(charset.equals("utf8") ? "utf-8" : charset));
            }
        }
        return found;
    }

    private static Map<String, List<String>> host(URI uri) {
        if (uri.getHost() == null) {
            return Map.of("fault", List.of("no host"));
        }
        List<String> port = uri.getPort() < 0 ? List.of() : List.of(String.valueOf(uri.getPort()));
        return Map.of("host", List.of(uri.getHost()), "port", port);
    }
}
