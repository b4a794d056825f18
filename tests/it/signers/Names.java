// Prints names as X500Principal does: java Names.java < names
//
// Each line of standard input is a name's DER in base64; for each, a line with its three renderings in base64, separated
// by spaces.

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.security.auth.x500.X500Principal;

class Names {
    public static void main(String[] args) throws Exception {
        for (String line : new String(System.in.readAllBytes(), StandardCharsets.US_ASCII).split("\n")) {
            var name = new X500Principal(Base64.getDecoder().decode(line));
            System.out.println(encode(name.getName(X500Principal.RFC2253)) + " " + encode(name.getName(X500Principal.RFC1779)) + " " + encode(name.toString()));
        }
    }

    static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
