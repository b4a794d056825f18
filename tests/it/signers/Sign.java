// Signs as a TPP on the Java platform does: java Sign.java CERTIFICATE KEY < lines
//
// Each line of standard input is "name: value", in signing order. One line is written for each way in which
// X500Principal prints the issuer, "variant<TAB>Signature value", and one more whose value is folded into the encoded
// words that MimeUtility makes of a value outside ASCII.

import java.io.ByteArrayInputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import javax.security.auth.x500.X500Principal;

class Sign {
    /** RFC 2047 allows 75 characters for an encoded word; this many bytes make one of 73. */
    static final int BYTES_PER_WORD = 45;

    public static void main(String[] args) throws Exception {
        var certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(Files.readAllBytes(Path.of(args[0]))));
        List<String> lines = new String(System.in.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
        String names = lines.stream().map(line -> line.substring(0, line.indexOf(": "))).collect(Collectors.joining(" "));
        String signature = sign(key(Path.of(args[1])), String.join("\n", lines));

        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        X500Principal issuer = certificate.getIssuerX500Principal();
        out.println("rfc2253\t" + value(certificate, issuer.getName(X500Principal.RFC2253), names, signature));
        out.println("rfc1779\t" + value(certificate, issuer.getName(X500Principal.RFC1779), names, signature));
        out.println("toString\t" + value(certificate, issuer.toString(), names, signature));
        out.println("folded\t" + folded(value(certificate, issuer.toString(), names, signature)));
    }

    static String value(X509Certificate certificate, String issuer, String names, String signature) {
        String serial = certificate.getSerialNumber().toString(16).toUpperCase();
        return "keyId=\"SN=" + serial + ",CA=" + issuer + "\",algorithm=\"rsa-sha256\",headers=\"" + names
            + "\",signature=\"" + signature + "\"";
    }

    static String folded(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        var words = new StringBuilder();
        for (int from = 0; from < bytes.length; from += BYTES_PER_WORD) {
            byte[] part = java.util.Arrays.copyOfRange(bytes, from, Math.min(from + BYTES_PER_WORD, bytes.length));
            words.append(words.isEmpty() ? "" : " ").append("=?UTF-8?B?").append(Base64.getEncoder().encodeToString(part)).append("?=");
        }
        return words.toString();
    }

    static String sign(PrivateKey key, String text) throws Exception {
        var signer = Signature.getInstance("SHA256withRSA");
        signer.initSign(key);
        signer.update(text.getBytes(StandardCharsets.UTF_8));
        return Base64.getEncoder().encodeToString(signer.sign());
    }

    static PrivateKey key(Path file) throws Exception {
        String pem = Files.readString(file).lines().filter(line -> !line.startsWith("-----") && !line.startsWith("#")).collect(Collectors.joining());
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    }
}
