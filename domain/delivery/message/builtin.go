package message

// words holds the built-in templates in one language. The SMS of a code fits one segment with usual titles: 160
// characters in English, 70 in Turkish and Arabic, whose letters need the 16-bit alphabet. Arabic texts begin with an
// Arabic letter, from which readers derive the direction of the line.
type words struct {
	language, direction string

	codeSMS, codeSubject    string
	codeLead, codeValid     string
	codeNever, codeNotAsked string
}

type notice struct{ title, body, sms string }

var vocabulary = []words{
	{
		language: "tr", direction: "ltr",
		codeSMS:      "{{brand}}: {{action}} kodu {{otp}} ({{expire}}). Paylaşmayın.",
		codeSubject:  "{{brand}} doğrulama kodunuz",
		codeLead:     "{{action}} işlemi için kodunuz:",
		codeValid:    "Kod {{expire}} geçerlidir.",
		codeNever:    "Kimseyle paylaşmayın: {{brand}} çalışanları bu kodu sormaz.",
		codeNotAsked: "Bu işlemi siz başlatmadıysanız şifrenizi değiştirin.",
	},
	{
		language: "en", direction: "ltr",
		codeSMS:      "{{brand}}: {{otp}} is your code for {{action}}. Valid for {{expire}}. Do not share it.",
		codeSubject:  "Your {{brand}} verification code",
		codeLead:     "Your code for {{action}}:",
		codeValid:    "It is valid for {{expire}}.",
		codeNever:    "Never share it: {{brand}} staff will not ask for it.",
		codeNotAsked: "If you did not start this, change your password.",
	},
	{
		language: "ar", direction: "rtl",
		codeSMS:      "رمز {{action}}: {{otp}}. صالح {{expire}}، لا تشاركه. {{brand}}",
		codeSubject:  "رمز التحقق الخاص بك في {{brand}}",
		codeLead:     "رمزك لعملية «{{action}}»:",
		codeValid:    "الرمز صالح لمدة {{expire}}.",
		codeNever:    "لا تشاركه مع أحد، فلن يطلبه منك أي موظف في {{brand}}.",
		codeNotAsked: "إذا لم تبدأ هذه العملية فغيّر كلمة المرور.",
	},
}

func builtins() []Template {
	var out []Template
	for _, w := range vocabulary {
		small := w.codeNever + "<br>" + w.codeNotAsked
		out = append(out,
			Template{Name: OTP, Language: w.language, Channel: SMS, Text: w.codeSMS},
			Template{
				Name: OTP, Language: w.language, Channel: MAIL, Subject: w.codeSubject,
				Text: w.codeLead + "\n\n{{otp}}\n\n" + w.codeValid + " " + w.codeNever + "\n" + w.codeNotAsked + "\n",
				HTML: w.shell(paragraph("", w.codeLead) + paragraph(codeStyle, "{{otp}}") + paragraph("", w.codeValid) +
					paragraph(smallStyle, small)),
			})
		for name, n := range texts[w.language] {
			out = append(out, w.templates(name, n)...)
		}
	}
	return out
}

// templates returns the templates of a notice: an SMS if it has one, and a mail.
func (w words) templates(name string, n notice) (out []Template) {
	if n.sms != "" {
		out = append(out, Template{Name: name, Language: w.language, Channel: SMS, Text: n.sms})
	}
	return append(out, Template{
		Name: name, Language: w.language, Channel: MAIL, Subject: n.title,
		Text: n.title + "\n\n" + n.body + "\n",
		HTML: w.shell(paragraph(titleStyle, n.title) + paragraph("", n.body)),
	})
}

// The style is inline and the frame is a table, because mail clients drop style sheets and ignore the width of other
// boxes. It is short, because every code mail is sealed and stored.
const (
	codeStyle  = "margin:20px 0;font:bold 32px monospace;letter-spacing:6px"
	titleStyle = "margin:0 0 12px;font-size:19px;font-weight:bold"
	smallStyle = "margin:20px 0 0;font-size:13px;color:#667085"
)

func paragraph(style, content string) string {
	if style != "" {
		style = ` style="` + style + `"`
	}
	return "<p" + style + ">" + content + "</p>"
}

func (w words) shell(content string) string {
	return `<!DOCTYPE html><html dir="` + w.direction + `" lang="` + w.language + `"><head><meta charset="utf-8">` +
		`<meta name="viewport" content="width=device-width"></head>` +
		`<body style="margin:0;background:#f2f4f7"><table role="presentation" dir="` + w.direction +
		`" align="center" width="100%" ` +
		`style="max-width:480px;margin:24px auto;background:#fff;border-radius:8px"><tr>` +
		`<td style="padding:28px;font:16px/1.5 Arial,sans-serif;color:#101828">` +
		`<p style="margin:0 0 20px;font-weight:bold;color:#475467">{{brand}}</p>` +
		content + `</td></tr></table></body></html>`
}
