package message

// words holds the built-in templates in one language. The SMS of a code fits one segment with usual titles: 160
// characters in English, 70 in Turkish and Arabic, whose letters need the 16-bit alphabet. Arabic texts begin with an
// Arabic letter, from which readers derive the direction of the line.
type words struct {
	language, direction string

	codeSMS, codeSubject    string
	codeLead, codeValid     string
	codeNever, codeNotAsked string

	notices map[string]notice
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
		notices: map[string]notice{
			KYCApproved: {
				title: "{{brand}} kimliğiniz onaylandı",
				body:  "Kimlik bilgileriniz incelendi ve onaylandı.",
				sms:   "{{brand}}: kimliğiniz onaylandı.",
			},
			KYCRejected: {
				title: "{{brand}} kimliğiniz onaylanmadı",
				body:  "Kimlik bilgileriniz incelendi ve onaylanmadı. {{reason}}",
				sms:   "{{brand}}: kimliğiniz onaylanmadı. Nedeni hesabınızda yazıyor.",
			},
			AddressApproved: {
				title: "{{brand}} adresiniz onaylandı",
				body:  "Adres belgeniz incelendi ve onaylandı.",
				sms:   "{{brand}}: adresiniz onaylandı.",
			},
			AddressRejected: {
				title: "{{brand}} adresiniz onaylanmadı",
				body:  "Adres belgeniz incelendi ve onaylanmadı. {{reason}}",
				sms:   "{{brand}}: adresiniz onaylanmadı. Nedeni hesabınızda yazıyor.",
			},
			DepositCredited: {
				title: "{{brand}} hesabınıza {{amount}} yatırıldı",
				body:  "Beklemede olan yatırma işleminiz tamamlandı: {{amount}} hesabınızda.",
				sms:   "{{brand}}: {{amount}} hesabınıza yatırıldı.",
			},
			DepositSender: {
				title: "{{brand}} yatırma işleminiz bilgi bekliyor",
				body:  "{{amount}} tutarındaki yatırma işleminiz için gönderici bilgisi gerekiyor. Lütfen hesabınızda tamamlayın.",
				sms:   "{{brand}}: {{amount}} yatırma işleminiz gönderici bilgisi bekliyor.",
			},
		},
	},
	{
		language: "en", direction: "ltr",
		codeSMS:      "{{brand}}: {{otp}} is your code for {{action}}. Valid for {{expire}}. Do not share it.",
		codeSubject:  "Your {{brand}} verification code",
		codeLead:     "Your code for {{action}}:",
		codeValid:    "It is valid for {{expire}}.",
		codeNever:    "Never share it: {{brand}} staff will not ask for it.",
		codeNotAsked: "If you did not start this, change your password.",
		notices: map[string]notice{
			KYCApproved: {
				title: "Your {{brand}} identity was confirmed",
				body:  "Your identity was checked and confirmed.",
				sms:   "{{brand}}: your identity was confirmed.",
			},
			KYCRejected: {
				title: "Your {{brand}} identity was not confirmed",
				body:  "Your identity was checked and could not be confirmed. {{reason}}",
				sms:   "{{brand}}: your identity was not confirmed. See your account for the reason.",
			},
			AddressApproved: {
				title: "Your {{brand}} address was confirmed",
				body:  "Your proof of address was checked and accepted.",
				sms:   "{{brand}}: your address was confirmed.",
			},
			AddressRejected: {
				title: "Your {{brand}} address was not confirmed",
				body:  "Your proof of address was checked and not accepted. {{reason}}",
				sms:   "{{brand}}: your address was not confirmed. See your account for the reason.",
			},
			DepositCredited: {
				title: "{{amount}} is on your {{brand}} account",
				body:  "Your pending deposit is complete: {{amount}} is on your account.",
				sms:   "{{brand}}: your deposit of {{amount}} is complete.",
			},
			DepositSender: {
				title: "Your {{brand}} deposit needs information",
				body:  "Your deposit of {{amount}} needs information about its sender. Please complete it in your account.",
				sms:   "{{brand}}: your deposit of {{amount}} needs information about its sender.",
			},
		},
	},
	{
		language: "ar", direction: "rtl",
		codeSMS:      "رمز {{action}}: {{otp}}. صالح {{expire}}، لا تشاركه. {{brand}}",
		codeSubject:  "رمز التحقق الخاص بك في {{brand}}",
		codeLead:     "رمزك لعملية «{{action}}»:",
		codeValid:    "الرمز صالح لمدة {{expire}}.",
		codeNever:    "لا تشاركه مع أحد، فلن يطلبه منك أي موظف في {{brand}}.",
		codeNotAsked: "إذا لم تبدأ هذه العملية فغيّر كلمة المرور.",
		notices: map[string]notice{
			KYCApproved: {
				title: "تم تأكيد هويتك في {{brand}}",
				body:  "تمت مراجعة هويتك وتأكيدها.",
				sms:   "تم تأكيد هويتك في {{brand}}.",
			},
			KYCRejected: {
				title: "لم يتم تأكيد هويتك في {{brand}}",
				body:  "تمت مراجعة هويتك ولم يتم تأكيدها. {{reason}}",
				sms:   "لم يتم تأكيد هويتك في {{brand}}. السبب في حسابك.",
			},
			AddressApproved: {
				title: "تم تأكيد عنوانك في {{brand}}",
				body:  "تمت مراجعة إثبات عنوانك وقبوله.",
				sms:   "تم تأكيد عنوانك في {{brand}}.",
			},
			AddressRejected: {
				title: "لم يتم تأكيد عنوانك في {{brand}}",
				body:  "تمت مراجعة إثبات عنوانك ولم يتم قبوله. {{reason}}",
				sms:   "لم يتم تأكيد عنوانك في {{brand}}. السبب في حسابك.",
			},
			DepositCredited: {
				title: "تم إيداع {{amount}} في حسابك في {{brand}}",
				body:  "اكتمل الإيداع الذي كان قيد الانتظار، والمبلغ {{amount}} في حسابك.",
				sms:   "تم إيداع {{amount}} في حسابك في {{brand}}.",
			},
			DepositSender: {
				title: "إيداعك في {{brand}} ينتظر معلومات",
				body:  "إيداعك بمبلغ {{amount}} يحتاج إلى معلومات عن المرسل. يرجى إكمالها في حسابك.",
				sms:   "إيداعك بمبلغ {{amount}} في {{brand}} يحتاج إلى معلومات عن المرسل.",
			},
		},
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
		for name, n := range w.notices {
			out = append(out, w.templates(name, n)...)
		}
		for kind, n := range texts[w.language] {
			out = append(out, w.templates(string(kind), n)...)
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
