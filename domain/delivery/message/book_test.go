package message_test

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

var languages = []string{"tr", "en", "ar"}

func book(t testing.TB, custom ...message.Template) *message.Book {
	t.Helper()
	return storetest.Value(message.NewBook("Castellan", custom))(t)
}

func code(action string) message.Values {
	return message.Values{"otp": "012345", "action": action, "expire": "120"}
}

func TestCodeMessages(t *testing.T) {
	b := book(t)
	titles := map[string]string{"tr": "Giriş", "en": "Login", "ar": "تسجيل الدخول"}
	sms := map[string]string{
		"tr": "Castellan: Giriş kodu 012345 (2 dakika). Paylaşmayın.",
		"en": "Castellan: 012345 is your code for Login. Valid for 2 minutes. Do not share it.",
		"ar": "رمز تسجيل الدخول: \u200e012345\u200e. صالح دقيقتين، لا تشاركه. Castellan",
	}
	subject := map[string]string{
		"tr": "Castellan doğrulama kodunuz", "en": "Your Castellan verification code",
		"ar": "رمز التحقق الخاص بك في Castellan",
	}
	for _, lang := range languages {
		m := b.Render(message.SMS, message.OTP, lang, "+905321234567", code(titles[lang]))
		storetest.Equal(t, m.Text, sms[lang], lang, "sms")
		if m.Channel != message.SMS || m.To != "+905321234567" || m.Code != "012345" || m.Language != lang ||
			m.Subject != "" || m.HTML != "" {
			t.Errorf("%s: fields of the sms: %#v %+q", lang, m, []string{m.To, m.Code, m.Subject, m.HTML})
		}
		m = b.Render(message.MAIL, message.OTP, lang, "a@example.com", code(titles[lang]))
		storetest.Equal(t, m.Subject, subject[lang], lang, "subject")
		storetest.Lacks(t, m.Subject, "012345", lang)
		shown, direction := "\n012345\n", `<html dir="ltr" lang="`+lang+`">`
		inHTML := ">012345<"
		if lang == "ar" {
			shown, direction = "\n\u200e012345\u200e\n", `<html dir="rtl" lang="ar">`
			inHTML = `><bdi dir="ltr">012345</bdi><`
		}
		for part, want := range map[string][]string{
			m.Text: {shown, titles[lang]},
			m.HTML: {direction, inHTML, titles[lang], `<meta charset="utf-8">`},
		} {
			for _, w := range want {
				storetest.Contains(t, part, w, lang)
			}
		}
		wellFormed(t, m.HTML)
		if n := len(m.Subject) + len(m.Text) + len(m.HTML); n >= 2048 {
			t.Errorf("%s: the stored mail has %d bytes", lang, n)
		}
	}
}

// An SMS with a code fits one segment with titles as long as the seeded ones.
func TestCodeFitsOneSegment(t *testing.T) {
	for lang, actions := range map[string][]string{
		"tr": {"Giriş", "Şifre sıfırlama", "Görüntülü doğrulama"},
		"en": {"Login", "Password reset", "Removal of the authenticator app"},
		"ar": {"تسجيل الدخول", "تعيين كلمة المرور"},
	} {
		for _, a := range actions {
			m := book(t).Render(message.SMS, message.OTP, lang, "+905321234567", code(a))
			limit, units := 160, len(m.Text)
			if strings.IndexFunc(m.Text, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
				limit, units = 70, len(utf16.Encode([]rune(m.Text)))
			}
			if units > limit {
				t.Errorf("%s: %d of %d units: %q", lang, units, limit, m.Text)
			}
		}
	}
}

func TestNotices(t *testing.T) {
	b := book(t)
	for _, kind := range message.Kinds() {
		bodies := map[string]bool{}
		for _, lang := range languages {
			v := message.Values{"device": "Pixel <9>", "time": "21.11.2026 10:30", "ip": "203.0.113.9", "reason": "Pixel <9>"}
			m := b.Render(message.MAIL, string(kind), lang, "a@example.com", v)
			if m.Language != lang || !strings.Contains(m.Subject, "Castellan") ||
				!strings.Contains(m.Text, "21.11.2026 10:30") || bodies[m.Text] || strings.Contains(m.HTML, "href") {
				t.Errorf("%s %s: %q %q", kind, lang, m.Subject, m.Text)
			}
			bodies[m.Text] = true
			storetest.Contains(t, m.HTML, m.Subject, kind, lang)
			wellFormed(t, m.HTML)
			s := b.Render(message.SMS, string(kind), lang, "+905321234567", v)
			code := b.Render(message.SMS, message.OTP, lang, "+905321234567", v) // the fallback for a missing template
			if each := kind.Once() == 0; s.HTML != "" || s.Code != "" || each == (s.Text == code.Text) {
				t.Errorf("%s %s: sms %q", kind, lang, s.Text)
			}
			if kind == message.FactorOff {
				if !strings.Contains(m.HTML, "Pixel &lt;9&gt;") || !strings.Contains(m.Text, "Pixel <9>") {
					t.Errorf("%s: the factor is not shown: %q", lang, m.Text)
				}
				if lang == "ar" && !(strings.Contains(m.HTML, "<bdi>Pixel") && strings.Contains(m.Text, "\u2068Pixel <9>\u2069")) {
					t.Errorf("the factor is not isolated: %q", m.HTML)
				}
			}
		}
	}
}

func TestLanguageFallback(t *testing.T) {
	b := book(t,
		message.Template{Name: "two", Language: "de", Channel: message.SMS, Text: "de {{otp}}"},
		message.Template{Name: "two", Language: "tr", Channel: message.SMS, Text: "tr {{otp}}"},
		message.Template{Name: "one", Language: "de", Channel: message.SMS, Text: "de1 {{otp}}"},
		message.Template{Name: "one", Language: "fr", Channel: message.SMS, Text: "fr1 {{otp}}"},
		message.Template{Name: "region", Language: "pt-BR", Channel: message.SMS, Text: "br {{otp}}"},
		message.Template{Name: "region", Language: "pt", Channel: message.SMS, Text: "pt {{otp}}"},
	)
	for _, c := range []struct{ name, ask, want string }{
		{message.OTP, "tr", "tr"}, {message.OTP, "AR", "ar"}, {message.OTP, "ar-EG", "ar"}, {message.OTP, "tr_TR", "tr"},
		{message.OTP, "fr", "en"}, {message.OTP, "", "en"}, {message.OTP, "-", "en"},
		{"two", "de", "de"}, {"two", "en", "tr"}, {"two", "fr", "tr"},
		{"one", "fr", "fr"}, {"one", "en", "de"},
		{"region", "pt-br", "pt-BR"}, {"region", "pt-PT", "pt"}, {"region", "xx", "pt-BR"},
		{"no such name", "ar", "ar"}, {"", "tr", "tr"},
	} {
		storetest.Equal(t, b.Render(message.SMS, c.name, c.ask, "", code("x")).Language, c.want, c.name, "in", c.ask)
	}
	if m := b.Render("PUSH", "no such name", "tr", "x",
		code("Giriş")); m.Text != "Castellan: Giriş kodu 012345 (2 dakika). Paylaşmayın." || m.Channel != "PUSH" {
		t.Errorf("a channel without templates: %q", m.Text)
	}
}

func TestCustomTemplates(t *testing.T) {
	b := book(t,
		message.Template{Name: message.OTP, Language: "EN", Channel: message.SMS, Text: "mine {{otp}}"},
		message.Template{Name: "notice", Language: "en", Channel: message.SMS, Text: "no code here"},
		message.Template{Name: "half", Language: "en", Channel: message.MAIL, Subject: "s", Text: "{{otp}}",
			HTML: "<p>nothing</p>"},
		message.Template{Name: "half", Language: "tr", Channel: message.MAIL, Subject: "s", Text: "whole {{otp}}"},
		message.Template{Name: "bound", Language: "ar", Channel: message.SMS,
			Text: "رمز {{otp}}\n\n@id.example.com #{{otp}}"},
		message.Template{Name: "all", Language: "en", Channel: message.MAIL, Subject: "{{brand}} {{ action }}",
			Text: "{{otp}}|{{action}}|{{expire}}|{{brand}}|{{device}}|{{ip}}|{{time}}"},
	)
	v := code("x")
	for _, c := range []struct {
		channel        message.Channel
		name, language string
		values         message.Values
		want           string
	}{
		{message.SMS, message.OTP, "en", v, "mine 012345"}, // replaces a built-in one
		{message.SMS, "notice", "en", v, "mine 012345"},    // has no code
		{message.SMS, "notice", "en", nil, "no code here"},
		{message.MAIL, "half", "en", v, "whole 012345"}, // readers of the HTML would not see the code
		{message.SMS, "bound", "ar", v, "رمز \u200e012345\u200e\n\n@id.example.com #012345"},
	} {
		storetest.Equal(t, b.Render(c.channel, c.name, c.language, "", c.values).Text, c.want, c.name)
	}
	storetest.Equal(t, b.Render(message.SMS, message.OTP, "tr", "", v).Language, "tr", "another language")
	m := b.Render(message.MAIL, "all", "en", "", message.Values{
		"otp": "1", "action": "a", "expire": "until noon", "device": "d", "ip": "192.0.2.1", "time": "t", "brand": "other",
		"x": "y"})
	if m.Text != "1|a|until noon|Castellan|d|192.0.2.1|t" || m.Subject != "Castellan a" {
		t.Errorf("all placeholders: %q %q", m.Subject, m.Text)
	}
	if m := book(t).Render(message.SMS, message.OTP, "en", "", v); m.Text == "mine 012345" {
		t.Error("a custom template leaked into another book")
	}
}

func TestValuesAreNotInterpreted(t *testing.T) {
	b := book(t)
	v := message.Values{"otp": "{{action}}", "action": `<b onclick="x">&'{{otp}}{{brand}}</b>`, "expire": "{{otp}}"}
	m := b.Render(message.MAIL, message.OTP, "en", "", v)
	storetest.Contains(t, m.Text, "Your code for "+v["action"]+":\n\n{{action}}\n\nIt is valid for {{otp}}.")
	storetest.Contains(t, m.HTML, "Your code for &lt;b onclick=&#34;x&#34;&gt;&amp;&#39;{{otp}}{{brand}}&lt;/b&gt;:")
	wellFormed(t, m.HTML)

	b = storetest.Value(message.NewBook(`A&B <"{{otp}}">`, nil))(t)
	m = b.Render(message.MAIL, message.OTP, "en", "", code("x"))
	if m.Subject != `Your A&B <"{{otp}}"> verification code` ||
		!strings.Contains(m.HTML, `A&amp;B &lt;&#34;{{otp}}&#34;&gt;</p>`) {
		t.Errorf("brand: %q %q", m.Subject, m.HTML)
	}
}

func TestSubjectStaysOneLine(t *testing.T) {
	b := book(t, message.Template{Name: "s", Language: "en", Channel: message.MAIL, Subject: "about {{action}}!",
		Text: "x"})
	m := b.Render(message.MAIL, "s", "en", "", message.Values{"action": "a\r\nBcc: x@example.com\x00\x7f\u2028\u0085ş"})
	storetest.Equal(t, m.Subject, "about a  Bcc: x@example.com    ş!", "subject")
}

func TestNewBookRefuses(t *testing.T) {
	good := message.Template{Name: "n", Language: "en", Channel: message.MAIL, Subject: "s", Text: "t", HTML: "h"}
	for part, change := range map[string]func(*message.Template){
		"name must":                    func(x *message.Template) { x.Name = "" },
		"name must have":               func(x *message.Template) { x.Name = "a\nb" },
		"language must":                func(x *message.Template) { x.Language = "" },
		"language must be":             func(x *message.Template) { x.Language = "en-" },
		"language must be a":           func(x *message.Template) { x.Language = "e1" },
		"language must be a tag":       func(x *message.Template) { x.Language = "türkçe" },
		"text must not be empty":       func(x *message.Template) { x.Text = "" },
		"has neither subject nor html": func(x *message.Template) { x.Channel = message.SMS },
		"needs a subject":              func(x *message.Template) { x.Subject = "" },
		"channel must":                 func(x *message.Template) { x.Channel = "FAX" },
		"subject must not hold":        func(x *message.Template) { x.Subject = "a\r\nBcc: b" },
		"text must be UTF-8":           func(x *message.Template) { x.Text = "\xff" },
		"html must be UTF-8 of at":     func(x *message.Template) { x.HTML = strings.Repeat("x", 40_000) },
		"text: unknown placeholder":    func(x *message.Template) { x.Text = "{{code}}" },
		"subject: placeholder opened":  func(x *message.Template) { x.Subject = "{{otp" },
		"must hold {{otp}}":            func(x *message.Template) { x.Name = message.OTP; x.Text = "{{otp}}" },
		"is inside a tag":              func(x *message.Template) { x.HTML = `<a href="{{otp}}">` },
	} {
		x := good
		change(&x)
		b, err := message.NewBook("Castellan", []message.Template{good, x})
		if storetest.Fails(t, err, part); b != nil {
			t.Errorf("%s: there is a book", part)
		}
		storetest.Fails(t, x.Validate(), part)
	}
	twice := good
	twice.Language = "EN"
	storetest.Fails(t, storetest.Err(message.NewBook("Castellan", []message.Template{good, twice})), "given twice")
	_, err := message.NewBook("Castellan", []message.Template{{Name: "first"}, {Name: "second"}})
	storetest.Fails(t, err, `"first"`)
	storetest.Fails(t, err, `"second"`)
	for _, brand := range []string{"", "a\nb", "\xff", strings.Repeat("x", 65)} {
		storetest.Fails(t, storetest.Err(message.NewBook(brand, nil)), "brand must have", brand)
	}
	storetest.Must(t, storetest.Err(message.NewBook(strings.Repeat("x", 64), nil)))
	for most, set := range map[int]func(x *message.Template, text string){
		128:      func(x *message.Template, text string) { x.Name = text },
		512:      func(x *message.Template, text string) { x.Subject = text },
		4 << 10:  func(x *message.Template, text string) { x.Text = text },
		32 << 10: func(x *message.Template, text string) { x.HTML = text },
	} {
		for more, ok := range []bool{true, false} {
			x := good
			if set(&x, strings.Repeat("x", most+more)); (x.Validate() == nil) != ok {
				t.Errorf("%d bytes: %v", most+more, x.Validate())
			}
		}
	}
}

func TestPlaceholdersOnlyBetweenTags(t *testing.T) {
	for html, ok := range map[string]bool{
		`{{otp}}`:                              true,
		`<p class="a>b" id='c>d'>{{otp}}</p>`:  true,
		`a < b {{otp}}`:                        true,
		`<!-- x --> {{otp}}`:                   true,
		`<style>p > b {}</style>{{otp}}`:       true,
		`<SCRIPT>x</SCRIPT >{{otp}}`:           true,
		`<stylish>{{otp}}</stylish>`:           true,
		`{{action}}<b>{{otp}}</b>{{expire}}`:   true,
		`<p class="{{otp}}">`:                  false,
		`<p class='a>{{otp}}'>`:                false,
		`<p {{otp}}>`:                          false,
		`<{{otp}}>`:                            false,
		`</p{{otp}}>`:                          false,
		`<!-- {{otp}} -->`:                     false,
		`<!-- > {{otp}} -->`:                   false,
		`<style>{{otp}}</style>`:               false,
		`<style media="x">a{}</p>{{otp}}`:      false,
		`<script>"</scrip" + {{otp}}</script>`: false,
		`<script src=x>{{brand}}</script>`:     false,
	} {
		x := message.Template{Name: "n", Language: "en", Channel: message.MAIL, Subject: "s", Text: "t", HTML: html}
		if err := x.Validate(); (err == nil) != ok {
			t.Errorf("%s: %v", html, err)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("a", "120", "ar")
	f.Add("<script>\r\n{{otp}}", "&", "en-US")
	b := book(f, message.Template{Name: "s", Language: "en", Channel: message.MAIL, Subject: "{{action}}{{expire}}",
		Text: "{{action}}", HTML: "<p>{{action}}</p><p>{{expire}}</p>"})
	f.Fuzz(func(t *testing.T, action, expire, lang string) {
		m := b.Render(message.MAIL, "s", lang, "", message.Values{"action": action, "expire": expire})
		if strings.IndexFunc(m.Subject, unicode.IsControl) >= 0 {
			t.Fatalf("control character in subject %q", m.Subject)
		}
		if m.Text != action {
			t.Fatalf("text %q of value %q", m.Text, action)
		}
		if strings.Count(m.HTML, "<") != 4 || strings.Count(m.HTML, ">") != 4 || strings.ContainsAny(m.HTML, `"'`) {
			t.Fatalf("a value made markup: %q", m.HTML)
		}
		b.Render(message.MAIL, message.OTP, lang, "", message.Values{"action": action, "expire": expire, "otp": action})
	})
}

// wellFormed checks that every tag that needs a closing tag has one, in order.
func wellFormed(t *testing.T, html string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	d.Strict = false
	var open []string
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, html)
		}
		switch x := token.(type) {
		case xml.StartElement:
			open = append(open, x.Name.Local)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != x.Name.Local {
				t.Fatalf("</%s> closes %v in %s", x.Name.Local, open, html)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) != 0 {
		t.Fatalf("never closed: %v", open)
	}
}
