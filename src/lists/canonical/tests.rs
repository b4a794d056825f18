//! The examples of the recommendations, where they need no DTD.

use crate::minting::canonical;

/// Exclusive XML Canonicalization, section 2.2: an element has the same form wherever it stands.
#[test]
fn the_context_of_an_element_does_not_matter() {
    let form = "<n1:elem2 xmlns:n1=\"http://example.net\" xml:lang=\"en\">\n    <n3:stuff xmlns:n3=\"ftp://example.org\"></n3:stuff>\n  </n1:elem2>";
    let elem2 = "<n1:elem2 xmlns:n1=\"http://example.net\" xml:lang=\"en\">\n    <n3:stuff xmlns:n3=\"ftp://example.org\"/>\n  </n1:elem2>";
    let contexts = [
        "<n0:local xmlns:n0=\"foo:bar\" xmlns:n3=\"ftp://example.org\">\n  @</n0:local>",
        "<n2:pdu xmlns:n1=\"http://example.com\" xmlns:n2=\"http://foo.example\" xml:lang=\"fr\" xml:space=\"retain\">\n  @</n2:pdu>",
        "<x xmlns=\"urn:x\">@</x>",
    ];
    for context in contexts {
        assert_eq!(canonical(&context.replace('@', elem2), Some("elem2")), form);
    }
}

/// Canonical XML, section 3.3: tags.
#[test]
fn tags_have_one_form() {
    let text = r#"<doc>
   <e1   />
   <e2   ></e2>
   <e3   name = "elem3"   id="elem3"   />
   <e4   name="elem4"   id="elem4"   ></e4>
   <e5 a:attr="out" b:attr="sorted" attr2="all" attr="I'm"
      xmlns:b="http://www.ietf.org"
      xmlns:a="http://www.w3.org"
      xmlns="http://example.org"/>
   <e6 xmlns="" xmlns:a="http://www.w3.org">
      <e7 xmlns="http://www.ietf.org">
         <e8 xmlns="" xmlns:a="http://www.w3.org">
            <e9 xmlns="" a:attr="v" xmlns:a="http://www.ietf.org"/>
         </e8>
      </e7>
   </e6>
</doc>"#;
    let form = r#"<doc>
   <e1></e1>
   <e2></e2>
   <e3 id="elem3" name="elem3"></e3>
   <e4 id="elem4" name="elem4"></e4>
   <e5 xmlns="http://example.org" xmlns:a="http://www.w3.org" xmlns:b="http://www.ietf.org" attr="I'm" attr2="all" b:attr="sorted" a:attr="out"></e5>
   <e6>
      <e7 xmlns="http://www.ietf.org">
         <e8 xmlns="">
            <e9 xmlns:a="http://www.ietf.org" a:attr="v"></e9>
         </e8>
      </e7>
   </e6>
</doc>"#;
    assert_eq!(canonical(text, None), form);
}

/// Canonical XML, section 3.4: characters and references.
#[test]
fn characters_have_one_form() {
    let text = "<doc>\r\n   <text>First line&#x0d;&#10;Second line</text>\r   <value>&#x32;</value>\n   <compute><![CDATA[value>\"0\" && value<\"10\" ?\"valid\":\"error\"]]></compute>\n   <compute expr='value>\"0\" &amp;&amp; value&lt;\"10\" ?\"valid\":\"error\"'>valid</compute>\n   <norm attr=' &apos;   &#x20;&#13;&#xa;&#9;   &apos; '/>\n   <spaced attr='a\tb\r\nc\nd'/>\n</doc>";
    let form = "<doc>\n   <text>First line&#xD;\nSecond line</text>\n   <value>2</value>\n   <compute>value&gt;\"0\" &amp;&amp; value&lt;\"10\" ?\"valid\":\"error\"</compute>\n   <compute expr=\"value>&quot;0&quot; &amp;&amp; value&lt;&quot;10&quot; ?&quot;valid&quot;:&quot;error&quot;\">valid</compute>\n   <norm attr=\" '    &#xD;&#xA;&#x9;   ' \"></norm>\n   <spaced attr=\"a b c d\"></spaced>\n</doc>";
    assert_eq!(canonical(text, None), form);
}

/// A prefix is declared where it is first used, again where it means another namespace, and not for its own sake.
#[test]
fn declarations_stand_where_they_are_used() {
    let text = "<a:r xmlns:a=\"urn:1\" xmlns:b=\"urn:2\" xmlns=\"urn:0\"><x a:y=\"\"><b:z/><b:z/></x><a:s xmlns:a=\"urn:3\"><a:t/></a:s><a:u/></a:r>";
    let form = "<a:r xmlns:a=\"urn:1\"><x xmlns=\"urn:0\" a:y=\"\"><b:z xmlns:b=\"urn:2\"></b:z><b:z xmlns:b=\"urn:2\"></b:z></x><a:s xmlns:a=\"urn:3\"><a:t></a:t></a:s><a:u></a:u></a:r>";
    assert_eq!(canonical(text, None), form);
}
