package rest

import (
	"strconv"
	"strings"
)

// phrase is what a refusal says of a field, or of a request as a whole, in the
// languages of D-GEN-16; %s stands for any text, in the same order in all three.
type phrase struct{ en, tr, ar string }

// phrases are the texts of INVALID_FIELD and CHAR_LIMIT_EXCEEDED, whose titles
// do not say what is wrong.
var phrases = []phrase{
	// What every endpoint says.
	{"is required", "zorunludur", "مطلوب"},
	{"must not be blank", "boş olamaz", "يجب ألا يكون فارغا"},
	{"must not be null", "null olamaz", "يجب ألا يكون null"},
	{"must be a string", "metin olmalıdır", "يجب أن يكون نصا"},
	{wantInt, "tam sayı olmalıdır", "يجب أن يكون عددا صحيحا"},
	{"must be an id: a whole number or its digits", "kimlik olmalıdır: tam sayı veya rakamları", "يجب أن يكون معرفا: عددا صحيحا أو أرقامه"},
	{"must be true or false", "true veya false olmalıdır", "يجب أن يكون true أو false"},
	{"must be a decimal number", "ondalık sayı olmalıdır", "يجب أن يكون عددا عشريا"},
	{wantTime, "epoch milisaniyesi, tarih (YYYY-MM-DD) veya ISO 8601 zamanı olmalıdır", "يجب أن يكون ميلي ثانية epoch أو تاريخا (YYYY-MM-DD) أو وقتا بصيغة ISO 8601"},
	{wantJSON, "JSON nesnesi veya dizisi olmalıdır", "يجب أن يكون كائن JSON أو مصفوفة JSON"},
	{"must be JSON", "JSON olmalıdır", "يجب أن يكون JSON"},
	{"must be an array", "dizi olmalıdır", "يجب أن يكون مصفوفة"},
	{"must be an object", "nesne olmalıdır", "يجب أن يكون كائنا"},
	{"is not valid", "geçerli değil", "غير صالح"},
	{"is not valid text", "geçerli bir metin değil", "ليس نصا صالحا"},
	{"is given more than once", "birden fazla kez verilmiş", "مكرر أكثر من مرة"},
	{"differs from %s", "%s ile aynı değil", "يختلف عن %s"},
	{"must be one of %s", "şunlardan biri olmalıdır: %s", "يجب أن يكون إحدى القيم: %s"},
	{"must be at least %s", "en az %s olmalıdır", "يجب ألا يقل عن %s"},
	{"must be at most %s", "en fazla %s olmalıdır", "يجب ألا يزيد عن %s"},
	{"has too many elements, at most %s", "çok fazla öğe içeriyor, en fazla %s", "عدد العناصر كبير جدا، الحد الأقصى %s"},
	{"is longer than %s characters", "en fazla %s karakter olabilir", "أطول من %s حرفا"},
	{"must not lie after the end of the range", "aralığın sonundan sonra olamaz", "يجب ألا يكون بعد نهاية النطاق"},
	{"is not one of this list", "bu listeye ait değil", "لا ينتمي إلى هذه القائمة"},
	{"malformed JSON at byte %s: %s", "%s. baytta hatalı JSON: %s", "JSON غير صالح عند البايت %s: %s"},
	{"expected an object", "nesne bekleniyordu", "كان المتوقع كائنا"},
	{"expected a key", "anahtar bekleniyordu", "كان المتوقع مفتاحا"},
	{"expected a colon", "iki nokta bekleniyordu", "كانت المتوقعة نقطتين رأسيتين"},
	{"expected a comma or the end of the array", "virgül veya dizinin sonu bekleniyordu", "كانت المتوقعة فاصلة أو نهاية المصفوفة"},
	{"expected a comma or the end of the object", "virgül veya nesnenin sonu bekleniyordu", "كانت المتوقعة فاصلة أو نهاية الكائن"},
	{"unexpected text after the value", "değerden sonra beklenmeyen metin", "نص غير متوقع بعد القيمة"},
	{"unexpected end", "beklenmeyen son", "نهاية غير متوقعة"},
	{"unexpected character", "beklenmeyen karakter", "حرف غير متوقع"},
	{"nested too deeply", "çok derin iç içe", "متداخل بعمق كبير"},
	{"too many tokens", "çok fazla simge", "عدد كبير من الرموز"},
	{"a key is too long", "bir anahtar çok uzun", "مفتاح طويل جدا"},
	{"duplicate key", "yinelenen anahtar", "مفتاح مكرر"},
	{"control character in a string", "metinde denetim karakteri", "حرف تحكم داخل نص"},
	{"invalid UTF-8", "geçersiz UTF-8", "UTF-8 غير صالح"},
	{"malformed request", "hatalı biçimli istek", "طلب غير صالح الصيغة"},
	{"nothing to change", "değiştirilecek bir şey yok", "لا يوجد ما يتغير"},
	{"at least one of these fields must be sent: %s", "şu alanlardan en az biri gönderilmelidir: %s", "يجب إرسال واحد على الأقل من هذه الحقول: %s"},
	{"is required without countryCode and phoneNumber", "countryCode ve phoneNumber yoksa zorunludur", "مطلوب عند عدم إرسال countryCode و phoneNumber"},
	{"is required without %s", "%s yoksa zorunludur", "مطلوب عند عدم إرسال %s"},

	// Accounts and credentials.
	{"must be digits, without the country code", "ülke kodu olmadan, yalnızca rakam olmalıdır", "يجب أن يكون أرقاما دون رمز الدولة"},
	{"is too short or too long", "çok kısa veya çok uzun", "قصير جدا أو طويل جدا"},
	{"must be a dialling code such as 90", "90 gibi bir telefon ülke kodu olmalıdır", "يجب أن يكون رمز اتصال دولي مثل 90"},
	{"must be a mail address", "e-posta adresi olmalıdır", "يجب أن يكون عنوان بريد إلكتروني"},
	{"a phone number or a mail address is needed", "telefon numarası veya e-posta adresi gerekli", "يلزم رقم هاتف أو عنوان بريد إلكتروني"},
	{"is not in canonical form", "standart biçimde değil", "ليس بالصيغة القياسية"},
	{"give either a phone number or a mail address", "telefon numarası veya e-posta adresinden yalnızca birini verin", "أرسل رقم هاتف أو عنوان بريد إلكتروني، وليس كليهما"},
	{"give either sessionId or all", "sessionId veya all alanlarından yalnızca birini verin", "أرسل sessionId أو all، وليس كليهما"},
	{"is required unless all is true", "all true değilse zorunludur", "مطلوب ما لم يكن all هو true"},
	{"must be text of at most %s characters", "en fazla %s karakterlik metin olmalıdır", "يجب أن يكون نصا لا يزيد عن %s حرفا"},
	{"must have at least %s characters", "en az %s karakter olmalıdır", "يجب ألا يقل عن %s حرفا"},
	{"must have at most %s characters", "en fazla %s karakter olmalıdır", "يجب ألا يزيد عن %s حرفا"},
	{"must not be your phone number or mail address", "telefon numaranız veya e-posta adresiniz olamaz", "يجب ألا يكون رقم هاتفك أو عنوان بريدك الإلكتروني"},
	{"is one of the most common passwords", "en yaygın parolalardan biri", "من أكثر كلمات المرور شيوعا"},
	{"is not the same as password", "password ile aynı değil", "لا يطابق password"},

	// Challenges and devices.
	{"must be TOTP, PUSH, MAIL or SMS", "TOTP, PUSH, MAIL veya SMS olmalıdır", "يجب أن يكون TOTP أو PUSH أو MAIL أو SMS"},
	{"must be SMS or MAIL", "SMS veya MAIL olmalıdır", "يجب أن يكون SMS أو MAIL"},
	{"must be APPROVED or DENIED", "APPROVED veya DENIED olmalıdır", "يجب أن يكون APPROVED أو DENIED"},
	{"is not the challenge of the token", "anahtarın doğrulama işlemi değil", "ليس عملية التحقق الخاصة بالرمز"},
	{"does not belong to this methodId", "bu methodId değerine ait değil", "لا ينتمي إلى methodId هذا"},
	{"must be an object with type webpush or webhook", "type değeri webpush veya webhook olan bir nesne olmalıdır", "يجب أن يكون كائنا نوعه type هو webpush أو webhook"},
	{"endpoint must be an https URL", "endpoint bir https adresi olmalıdır", "يجب أن يكون endpoint عنوان https"},
	{"keys must hold p256dh, a P-256 point, and auth, 16 bytes, in base64url", "keys, base64url olarak p256dh (P-256 noktası) ve auth (16 bayt) içermelidir", "يجب أن يحتوي keys على p256dh (نقطة P-256) و auth (16 بايت) بترميز base64url"},
	{"url must be an https URL", "url bir https adresi olmalıdır", "يجب أن يكون url عنوان https"},
	{"type must be webpush or webhook", "type webpush veya webhook olmalıdır", "يجب أن يكون type هو webpush أو webhook"},
	{"must be a public JWK: EC with P-256, or OKP with Ed25519", "açık bir JWK olmalıdır: P-256 ile EC veya Ed25519 ile OKP", "يجب أن يكون JWK عاما: EC مع P-256 أو OKP مع Ed25519"},
	{"is a private key; it must never leave the device", "özel anahtar; cihazdan asla çıkmamalıdır", "مفتاح خاص؛ يجب ألا يغادر الجهاز أبدا"},
	{"must not contain control characters", "denetim karakteri içeremez", "يجب ألا يحتوي على أحرف تحكم"},
	{"must be text without control characters", "denetim karakteri içermeyen metin olmalıdır", "يجب أن يكون نصا خاليا من أحرف التحكم"},

	// Administration of the second factor.
	{"must be 2 to 64 capital letters, digits and underscores, beginning with a letter", "harfle başlayan, 2 ile 64 arası büyük harf, rakam ve alt çizgi olmalıdır", "يجب أن يكون من 2 إلى 64 حرفا كبيرا أو رقما أو شرطة سفلية ويبدأ بحرف"},
	{"must be from %s to %s", "%s ile %s arasında olmalıdır", "يجب أن يكون من %s إلى %s"},
	{"must not be negative", "negatif olamaz", "يجب ألا يكون سالبا"},
	{"there is no such action", "böyle bir işlem yok", "لا توجد عملية بهذا الرمز"},
	{"is not the code of an action", "bir işlem kodu değil", "ليس رمز عملية"},
	{"there is no method %s", "%s yöntemi yok", "لا توجد طريقة %s"},
	{"must name at least one method", "en az bir yöntem içermelidir", "يجب أن يذكر طريقة واحدة على الأقل"},
	{"must be an array of [methodCode, templateName]", "[methodCode, templateName] dizisi olmalıdır", "يجب أن يكون مصفوفة من [methodCode, templateName]"},
	{"%s cannot be a methodCode", "%s bir methodCode olamaz", "لا يمكن أن يكون %s قيمة methodCode"},
	{"%s cannot be a templateName", "%s bir templateName olamaz", "لا يمكن أن يكون %s قيمة templateName"},
	{"%s is named twice", "%s iki kez verilmiş", "%s مذكور مرتين"},
	{"TOTP has no template: nothing is sent", "TOTP için şablon yoktur: bir şey gönderilmez", "لا قالب لطريقة TOTP: لا يرسل شيء"},
	{"needs a text in at least one of tr, en and ar", "tr, en ve ar dillerinden en az birinde metin gerekli", "يلزم نص بإحدى اللغات tr و en و ar على الأقل"},
	{"has the unknown key %s; known are tr, en and ar", "bilinmeyen anahtar: %s; bilinenler tr, en ve ar", "مفتاح غير معروف: %s؛ المعروف tr و en و ar"},
	{"%s must be a string", "%s metin olmalıdır", "يجب أن يكون %s نصا"},
	{"%s is longer than %s characters", "%s en fazla %s karakter olabilir", "%s أطول من %s حرفا"},
	{"%s contains a control character", "%s denetim karakteri içeriyor", "يحتوي %s على حرف تحكم"},
	{"has more than %s keys", "%s taneden fazla anahtar içeriyor", "يحتوي على أكثر من %s مفتاحا"},
	{"has the key %s twice", "%s anahtarını iki kez içeriyor", "يحتوي على المفتاح %s مرتين"},
	{"is not usable as a key", "anahtar olarak kullanılamaz", "لا يصلح مفتاحا"},
	{"is not valid JSON", "geçerli JSON değil", "ليس JSON صالحا"},
	{"has text behind its end", "sonundan sonra metin içeriyor", "يحتوي على نص بعد نهايته"},

	// Rules of the firewall and of countries.
	{"is neither an IP address nor a network such as 192.0.2.0/24", "IP adresi veya 192.0.2.0/24 gibi bir ağ değil", "ليس عنوان IP ولا شبكة مثل 192.0.2.0/24"},
	{"is not a user id", "kullanıcı kimliği değil", "ليس معرف مستخدم"},
	{"must be of the form '<METHOD> <path>'", "'<METHOD> <path>' biçiminde olmalıdır", "يجب أن يكون بالصيغة '<METHOD> <path>'"},
	{"does not begin with a method of HTTP", "bir HTTP yöntemiyle başlamıyor", "لا يبدأ بطريقة من طرق HTTP"},
	{"does not name a path", "bir yol belirtmiyor", "لا يسمي مسارا"},
	{"must be 1 to %s printable characters", "1 ile %s arası yazdırılabilir karakter olmalıdır", "يجب أن يكون من 1 إلى %s حرفا قابلا للطباعة"},
	{"must be 1 to %s bytes of printable text", "1 ile %s bayt arası yazdırılabilir metin olmalıdır", "يجب أن يكون نصا قابلا للطباعة من 1 إلى %s بايت"},
	{"must be rate_limit, whitelist, blacklist or whitelist_force", "rate_limit, whitelist, blacklist veya whitelist_force olmalıdır", "يجب أن يكون rate_limit أو whitelist أو blacklist أو whitelist_force"},
	{"is required for a rate_limit", "rate_limit için zorunludur", "مطلوب لنوع rate_limit"},
	{"must be a whole number from 1 to %s", "1 ile %s arasında tam sayı olmalıdır", "يجب أن يكون عددا صحيحا من 1 إلى %s"},
	{"must be an instant in epoch milliseconds; 0: never", "epoch milisaniyesi olarak bir an olmalıdır; 0: hiçbir zaman", "يجب أن يكون لحظة بالميلي ثانية epoch؛ 0: أبدا"},
	{"must be USER_ID, IP or COUNTRY_CODE", "USER_ID, IP veya COUNTRY_CODE olmalıdır", "يجب أن يكون USER_ID أو IP أو COUNTRY_CODE"},
	{"must be ACTIVE or INACTIVE", "ACTIVE veya INACTIVE olmalıdır", "يجب أن يكون ACTIVE أو INACTIVE"},
	{"you could not reach the rules any more after this; send force: true if that is what you want", "bundan sonra kurallara erişemezsiniz; istediğiniz buysa force: true gönderin", "لن تتمكن بعد هذا من الوصول إلى القواعد؛ أرسل force: true إذا كان هذا ما تريده"},
	{"is not an IP address", "IP adresi değil", "ليس عنوان IP"},
	{"is not a country's code (ISO 3166-1 alpha-2, capital letters)", "ülke kodu değil (ISO 3166-1 alpha-2, büyük harf)", "ليس رمز دولة (ISO 3166-1 alpha-2 بأحرف كبيرة)"},
	{"must be a country's code of two letters (ISO 3166-1 alpha-2), such as TR", "TR gibi iki harfli ülke kodu (ISO 3166-1 alpha-2) olmalıdır", "يجب أن يكون رمز دولة من حرفين (ISO 3166-1 alpha-2) مثل TR"},

	// Roles and the resource registry.
	{"must be 1 to 64 letters, digits and . _ : -, beginning with a letter or digit", "harf veya rakamla başlayan, 1 ile 64 arası harf, rakam ve . _ : - olmalıdır", "يجب أن يكون من 1 إلى 64 حرفا أو رقما أو . _ : - ويبدأ بحرف أو رقم"},
	{"must be a text of at most %s characters", "en fazla %s karakterlik metin olmalıdır", "يجب أن يكون نصا لا يزيد عن %s حرفا"},
	{"must be 1 (active) or 0 (passive)", "1 (aktif) veya 0 (pasif) olmalıdır", "يجب أن يكون 1 (نشط) أو 0 (غير نشط)"},
	{"is no resource type", "kaynak türü değil", "ليس نوع مورد"},
	{"is not that of the resource type", "kaynak türününki değil", "لا يطابق نوع المورد"},
	{"is no resource", "kaynak değil", "ليس موردا"},
	{"would nest the resource in itself", "kaynağı kendi içine yerleştirir", "يجعل المورد متداخلا في نفسه"},
	{"is of another context", "başka bir bağlama ait", "ينتمي إلى سياق آخر"},
	{"%s is for the role admin alone and cannot be granted", "%s yalnızca admin rolü içindir ve verilemez", "%s لدور admin وحده ولا يمكن منحه"},

	// The address book.
	{"must be 10 to 128 letters, digits and : _ . -", "10 ile 128 arası harf, rakam ve : _ . - olmalıdır", "يجب أن يكون من 10 إلى 128 حرفا أو رقما أو : _ . -"},
	{"is no currency that can be withdrawn", "çekilebilen bir para birimi değil", "ليست عملة يمكن سحبها"},
	{"is no network to withdraw on", "çekim yapılabilen bir ağ değil", "ليست شبكة يمكن السحب عليها"},
	{"is no network on which this currency can be withdrawn", "bu para biriminin çekilebildiği bir ağ değil", "ليست شبكة يمكن سحب هذه العملة عليها"},
}

// exactly are the phrases that stand for themselves, alike those that hold texts.
var exactly, alike = func() (map[string]phrase, []phrase) {
	exactly, alike := map[string]phrase{}, []phrase{}
	for _, p := range phrases {
		if strings.Contains(p.en, "%s") {
			alike = append(alike, p)
		} else {
			exactly[p.en] = p
		}
	}
	return exactly, alike
}()

func (p phrase) in(language string) string {
	if language == "tr" {
		return p.tr
	}
	return p.ar
}

// inWords says an English text in Turkish or Arabic; not ok where it is no phrase.
// A value in quotes may stand before it, of which it is then said.
func inWords(text, language string) (said string, ok bool) {
	if p, ok := exactly[text]; ok {
		return p.in(language), true
	}
	if value, err := strconv.QuotedPrefix(text); err == nil {
		if said, ok := inWords(strings.TrimSpace(text[len(value):]), language); ok {
			return value + " " + said, true
		}
	}
	for _, p := range alike {
		if held, ok := p.holds(text); ok {
			parts := strings.Split(p.in(language), "%s")
			said = parts[0]
			for i, h := range held {
				if w, ok := inWords(h, language); ok {
					h = w
				}
				said += h + parts[i+1]
			}
			return said, true
		}
	}
	return "", false
}

// holds tells the texts with which a phrase comes to be a text.
func (p phrase) holds(text string) (held []string, ok bool) {
	parts := strings.Split(p.en, "%s")
	if text, ok = strings.CutPrefix(text, parts[0]); !ok {
		return nil, false
	}
	for i, part := range parts[1:] {
		var h string
		if last := i == len(parts)-2; last {
			h, ok = strings.CutSuffix(text, part)
		} else {
			h, text, ok = strings.Cut(text, part)
		}
		if !ok || h == "" {
			return nil, false
		}
		held = append(held, h)
	}
	return held, true
}
