package mfa

import (
	"context"
	"slices"
	"strings"
)

// SeedMethods returns the methods of a new installation (D-MFA-11).
func SeedMethods() []Method {
	return []Method{
		{Code: SMS, ExpireMs: 120_000, RenewStartMs: 60_000},
		{Code: MAIL, ExpireMs: 120_000, RenewStartMs: 60_000},
		{Code: PUSH, ExpireMs: 120_000},
		{Code: TOTP},
	}
}

// SeedActions returns the actions of a new installation: those of section 2.1 of the interface. Codes that are an
// extension of this service have no row.
func SeedActions() []Action {
	var out []Action
	own := []string{DeviceAdd, DeviceRemove, ApproveRequest, Register, Withdraw}
	for _, a := range builtIn {
		if !slices.Contains(own, a.Code) {
			out = append(out, a)
		}
	}
	return out
}

// Seed writes the content of a new installation. The caller must do this once, in one transaction.
func Seed(ctx context.Context, s Store) error {
	for _, m := range SeedMethods() {
		if err := s.AddMethod(ctx, m); err != nil {
			return err
		}
	}
	for _, a := range SeedActions() {
		if err := s.AddAction(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// The header keys of the built-in actions. An action supplies values under these keys, and only supplied values get
// rows (D-2FA-25).
const (
	HeaderDevice  = "device"  // the device that starts the action
	HeaderIP      = "ip"      // its address
	HeaderCountry = "country" // the country of the address
	HeaderAllowed = "allowed" // the country added to or removed from the geographic filter
	HeaderMail    = "email"   // the address to be verified
	HeaderSubject = "subject" // the device added to or removed from the account
	HeaderRequest = "request" // the change that a request would make
	HeaderAmount  = "amount"  // the amount of a withdrawal, with its currency and network
	HeaderFee     = "fee"     // its fee
	HeaderAddress = "address" // its destination, with the tag

	// Of intents only.
	HeaderOperation   = "operation"   // method and path of the guarded request
	HeaderTime        = "time"        // the start of the challenge, RFC 3339 in UTC
	HeaderDeviceID    = "deviceId"    // the id of the device removed from the account
	HeaderKey         = "key"         // the thumbprint of a device's key (RFC 7638)
	HeaderPlatform    = "platform"    // the operating system of a device
	HeaderTarget      = "target"      // the address of a device's push messages
	HeaderReference   = "reference"   // the id of the operation in the service that requested it
	HeaderAccount     = "account"     // the account of a withdrawal
	HeaderTag         = "tag"         // the tag of its destination, or none
	HeaderRules       = "rules"       // the rules of the money policy that hold it
	HeaderApproved    = "approved"    // how and when its owner approved it
	HeaderInitiator   = "initiator"   // who requested it without its owner
	HeaderContract    = "contract"    // id and version of an accepted contract
	HeaderName        = "name"        // the name of a person
	HeaderDescription = "description" // the description of a device
	HeaderPhone       = "phone"       // the phone number of a new account
	HeaderRemembered  = "remembered"  // the method that was completed because the client is remembered
)

// Reserved reports whether a key is that of a row that every intent may have: when, from where and by which device a
// challenge was started, and the remembered method. No service and no route has a row of its own under it.
func Reserved(key string) bool {
	return slices.ContainsFunc([]string{HeaderTime, HeaderDevice, HeaderIP, HeaderCountry, HeaderRemembered},
		func(own string) bool { return strings.EqualFold(own, strings.TrimSpace(key)) })
}

// Titles name the action briefly: an SMS in Turkish or Arabic has 70 characters in total.
var builtIn = func() []Action {
	device := Header{HeaderDevice, Text{"tr": "Cihaz", "en": "Device", "ar": "الجهاز"}}
	ip := Header{HeaderIP, Text{"tr": "IP adresi", "en": "IP address", "ar": "عنوان IP"}}
	country := Header{HeaderCountry, Text{"tr": "Konum", "en": "Location", "ar": "الموقع"}}
	allowed := Header{HeaderAllowed, Text{"tr": "Ülke", "en": "Country", "ar": "الدولة"}}
	mail := Header{HeaderMail, Text{"tr": "E-posta adresi", "en": "Email address", "ar": "عنوان البريد الإلكتروني"}}
	subject := Header{HeaderSubject, Text{"tr": "Hesaptaki cihaz", "en": "Account device", "ar": "جهاز الحساب"}}
	request := Header{HeaderRequest, Text{"tr": "İstek", "en": "Request", "ar": "الطلب"}}
	withdrawal := []Header{{HeaderAmount, Text{"tr": "Tutar", "en": "Amount", "ar": "المبلغ"}},
		{HeaderFee, Text{"tr": "Ücret", "en": "Fee", "ar": "الرسوم"}},
		{HeaderAddress, Text{"tr": "Adres", "en": "Address", "ar": "العنوان"}}}
	from := []Header{device, ip, country}
	with := func(h Header) Headers { return append(Headers{h}, from...) }
	return []Action{
		{Login, Text{"tr": "Giriş", "en": "Sign-in", "ar": "تسجيل الدخول"}, from},
		{ResetPassword, Text{"tr": "Şifre sıfırlama", "en": "Password reset", "ar": "استعادة كلمة المرور"}, from},
		{UpdatePassword, Text{"tr": "Şifre değiştirme", "en": "Password change", "ar": "تغيير كلمة المرور"}, from},
		{TOTPSetup, Text{"tr": "Doğrulayıcı kurulumu", "en": "Authenticator setup", "ar": "إعداد تطبيق المصادقة"},
			from},
		{TOTPDeactivate, Text{"tr": "Doğrulayıcı kaldırma", "en": "Authenticator removal",
			"ar": "إزالة تطبيق المصادقة"}, from},
		{GeofilterAdd, Text{"tr": "İzinli ülke ekleme", "en": "New allowed country", "ar": "إضافة دولة مسموح بها"},
			with(allowed)},
		{GeofilterRemove, Text{"tr": "İzinli ülke silme", "en": "Allowed country removal",
			"ar": "إزالة دولة مسموح بها"}, with(allowed)},
		{DuringVideoKYC, Text{"tr": "Görüntülü doğrulama", "en": "Video identity check",
			"ar": "التحقق من الهوية بالفيديو"}, from},
		{VerifyEmail, Text{"tr": "E-posta doğrulama", "en": "Email verification", "ar": "تأكيد البريد الإلكتروني"},
			with(mail)},
		{DeviceAdd, Text{"tr": "Cihaz ekleme", "en": "New device", "ar": "إضافة جهاز"}, with(subject)},
		{DeviceRemove, Text{"tr": "Cihaz kaldırma", "en": "Device removal", "ar": "إزالة جهاز"}, with(subject)},
		{ApproveRequest, Text{"tr": "İstek onayı", "en": "Request approval", "ar": "الموافقة على طلب"}, with(request)},
		{Register, Text{"tr": "Hesap açma", "en": "Sign-up", "ar": "إنشاء حساب"}, from},
		{Withdraw, Text{"tr": "Para çekme", "en": "Withdrawal", "ar": "سحب"}, append(withdrawal, from...)},
	}
}()

// labels are the labels of the built-in details.
var labels = func() map[string]Text {
	out := map[string]Text{
		HeaderOperation:   {"tr": "İşlem", "en": "Operation", "ar": "العملية"},
		HeaderTime:        {"tr": "Zaman", "en": "Time", "ar": "الوقت"},
		HeaderDeviceID:    {"tr": "Cihaz kimliği", "en": "Device ID", "ar": "معرّف الجهاز"},
		HeaderKey:         {"tr": "Anahtar parmak izi", "en": "Key thumbprint", "ar": "بصمة المفتاح"},
		HeaderPlatform:    {"tr": "Platform", "en": "Platform", "ar": "المنصة"},
		HeaderTarget:      {"tr": "Bildirim adresi", "en": "Push address", "ar": "عنوان الإشعارات"},
		HeaderReference:   {"tr": "Referans", "en": "Reference", "ar": "المرجع"},
		HeaderAccount:     {"tr": "Hesap", "en": "Account", "ar": "الحساب"},
		HeaderTag:         {"tr": "Etiket", "en": "Tag", "ar": "الوسم"},
		HeaderRules:       {"tr": "Kurallar", "en": "Rules", "ar": "القواعد"},
		HeaderApproved:    {"tr": "Hesap sahibinin onayı", "en": "Approved by the owner", "ar": "موافقة صاحب الحساب"},
		HeaderInitiator:   {"tr": "İsteyen", "en": "Requested by", "ar": "طلبه"},
		HeaderContract:    {"tr": "Sözleşme", "en": "Contract", "ar": "العقد"},
		HeaderName:        {"tr": "Ad soyad", "en": "Name", "ar": "الاسم"},
		HeaderDescription: {"tr": "Açıklama", "en": "Description", "ar": "الوصف"},
		HeaderRemembered:  {"tr": "Hatırlanan yöntem", "en": "Remembered method", "ar": "الطريقة المحفوظة"},
		HeaderPhone:       {"tr": "Telefon", "en": "Phone number", "ar": "رقم الهاتف"},
	}
	for _, a := range builtIn {
		for _, h := range a.Headers {
			out[h.Key] = h.Label
		}
	}
	return out
}()

// Label returns the built-in label of a detail in a language; "" for a key of no built-in action.
func Label(key, lang string) string { return labels[key].In(lang) }

// BuiltIn reports whether an action is built in.
func BuiltIn(code string) bool {
	return slices.ContainsFunc(builtIn, func(a Action) bool { return a.Code == code })
}
