package rest

import (
	"strings"

	"castellan/domain/kit/fault"
)

// entry is the definition of an error code: its status, and its title in the languages of D-GEN-16.
type entry struct {
	status     int
	en, tr, ar string
	retry      bool // Retry-After always accompanies it
}

func (e entry) title(language string) string {
	switch language {
	case "tr":
		return e.tr
	case "ar":
		return e.ar
	}
	return e.en
}

// registry is the one table from code to status (D-GEN-09).
var registry = map[fault.Code]entry{
	fault.InvalidField: {status: 400, en: "Invalid request", tr: "Geçersiz istek", ar: "طلب غير صالح"},
	fault.CharLimitExceeded: {status: 400, en: "Too many characters",
		tr: "Karakter sınırı aşıldı", ar: "تم تجاوز عدد الأحرف المسموح"},

	fault.Unauthenticated: {status: 401, en: "Authentication required",
		tr: "Kimlik doğrulaması gerekli", ar: "المصادقة مطلوبة"},
	fault.TokenExpired: {status: 401, en: "Token expired",
		tr: "Oturum anahtarının süresi doldu", ar: "انتهت صلاحية الرمز"},
	fault.TokenRevoked: {status: 401, en: "Token revoked",
		tr: "Oturum anahtarı iptal edildi", ar: "تم إلغاء الرمز"},
	fault.SubjectUnknown: {status: 401, en: "Subject unknown",
		tr: "Kimlik bir hesaba bağlı değil", ar: "الهوية غير مرتبطة بحساب"},
	fault.ChallengeRequired: {status: 401, en: "Challenge required",
		tr: "Ek doğrulama gerekli", ar: "التحقق الإضافي مطلوب"},
	fault.InvalidCredentials: {status: 401, en: "Invalid credentials",
		tr: "Hatalı giriş bilgileri", ar: "بيانات الدخول غير صحيحة"},
	fault.DeviceSignatureRequired: {status: 401, en: "Device signature required",
		tr: "Cihaz imzası gerekli", ar: "توقيع الجهاز مطلوب"},
	fault.DeviceSignatureInvalid: {status: 401, en: "Device signature invalid",
		tr: "Cihaz imzası geçersiz", ar: "توقيع الجهاز غير صالح"},
	fault.DPoPInvalid: {status: 401, en: "Proof of the session key invalid",
		tr: "Oturum anahtarının kanıtı geçersiz", ar: "إثبات مفتاح الجلسة غير صالح"},

	fault.Forbidden: {status: 403, en: "Not permitted",
		tr: "Bu işlem için yetkiniz yok", ar: "غير مصرح بهذه العملية"},
	fault.TenantMismatch: {status: 403, en: "Wrong tenant",
		tr: "Yanlış kiracı", ar: "المستأجر غير مطابق"},
	fault.AccessDenied: {status: 403, en: "Access denied",
		tr: "Erişim reddedildi", ar: "تم رفض الوصول"},
	fault.GeoBlocked: {status: 403, en: "Country not allowed",
		tr: "Bu ülkeden erişime izin verilmiyor", ar: "الوصول من هذا البلد غير مسموح"},
	fault.IPNotAllowed: {status: 403, en: "Address not allowed",
		tr: "Bu adresten erişime izin verilmiyor", ar: "الوصول من هذا العنوان غير مسموح"},
	fault.OTPRequired: {status: 403, en: "One-time code required",
		tr: "Tek kullanımlık kod gerekli", ar: "رمز الاستخدام لمرة واحدة مطلوب"},

	fault.GrantMismatch: {status: 403, en: "Grant of another request",
		tr: "Onay başka bir istek için", ar: "الموافقة لطلب آخر"},

	fault.RecordNotFound: {status: 404, en: "Record not found",
		tr: "Kayıt bulunamadı", ar: "السجل غير موجود"},
	fault.ChallengeNotFound: {status: 404, en: "Challenge not found",
		tr: "Doğrulama işlemi bulunamadı", ar: "عملية التحقق غير موجودة"},
	fault.MethodNotFound: {status: 404, en: "Method not found",
		tr: "Doğrulama yöntemi bulunamadı", ar: "طريقة التحقق غير موجودة"},
	fault.NotFound: {status: 404, en: "No such resource",
		tr: "Böyle bir kaynak yok", ar: "المورد غير موجود"},

	fault.MethodNotAllowed: {status: 405, en: "Method not allowed",
		tr: "Bu yönteme izin verilmiyor", ar: "هذه الطريقة غير مسموحة"},

	fault.RequestTimeout: {status: 408, en: "Request not complete in time",
		tr: "İstek zamanında tamamlanmadı", ar: "لم يكتمل الطلب في الوقت المحدد"},

	fault.RecordAlreadyExist: {status: 409, en: "Record already exists",
		tr: "Kayıt zaten var", ar: "السجل موجود مسبقا"},
	fault.RecordLimitReached: {status: 409, en: "Record limit reached",
		tr: "Kayıt sınırına ulaşıldı", ar: "تم بلوغ الحد الأقصى للسجلات"},
	fault.InvalidState: {status: 409, en: "Not possible in this state",
		tr: "Kayıt bu işlem için uygun durumda değil", ar: "غير ممكن في الحالة الحالية"},
	fault.ChallengeNotCompleted: {status: 409, en: "Challenge not completed",
		tr: "Doğrulama henüz tamamlanmadı", ar: "لم يكتمل التحقق بعد"},
	fault.ChallengeClosed: {status: 409, en: "Challenge closed",
		tr: "Doğrulama işlemi kapatıldı", ar: "تم إغلاق عملية التحقق"},
	fault.MethodAlreadyCompleted: {status: 409, en: "Method already completed",
		tr: "Bu yöntem zaten tamamlandı", ar: "اكتملت هذه الطريقة مسبقا"},
	fault.MFANotAvailable: {status: 409, en: "No second factor available",
		tr: "Kullanılabilir ikinci adım yok", ar: "لا يتوفر عامل تحقق ثان"},
	fault.TOTPAlreadyDefined: {status: 409, en: "Authenticator already set up",
		tr: "Doğrulama uygulaması zaten tanımlı", ar: "تطبيق المصادقة معد مسبقا"},
	fault.TOTPNotDefined: {status: 409, en: "Authenticator not set up",
		tr: "Doğrulama uygulaması tanımlı değil", ar: "تطبيق المصادقة غير معد"},
	fault.RenewNotSupported: {status: 409, en: "Renewal not supported",
		tr: "Bu yöntem yenilenemez", ar: "التجديد غير مدعوم"},
	fault.RenewClosed: {status: 409, en: "Too late to renew",
		tr: "Yenileme süresi geçti", ar: "فات وقت التجديد"},
	fault.GrantUsed: {status: 409, en: "Grant already redeemed",
		tr: "Onay zaten kullanıldı", ar: "تم استخدام الموافقة من قبل"},
	fault.IdempotencyConflict: {status: 409, en: "Request still running",
		tr: "Aynı istek hâlâ işleniyor", ar: "الطلب نفسه قيد التنفيذ"},

	fault.ChallengeExpired: {status: 410, en: "Challenge expired",
		tr: "Doğrulama süresi doldu", ar: "انتهت صلاحية عملية التحقق"},
	fault.MethodExpired: {status: 410, en: "Method expired",
		tr: "Yöntemin süresi doldu", ar: "انتهت صلاحية طريقة التحقق"},

	fault.PayloadTooLarge: {status: 413, en: "Request too large",
		tr: "İstek çok büyük", ar: "حجم الطلب كبير جدا"},
	fault.UnsupportedMedia: {status: 415, en: "Unsupported media type",
		tr: "Desteklenmeyen içerik türü", ar: "نوع المحتوى غير مدعوم"},

	fault.WDNetworkAssetMismatch: {status: 422, en: "Address does not fit currency and network",
		tr: "Adres para birimi ve ağ ile uyuşmuyor", ar: "العنوان لا يطابق العملة والشبكة"},
	fault.OTPInvalid: {status: 422, en: "Wrong code", tr: "Hatalı kod", ar: "رمز غير صحيح"},
	fault.RecoveryCodeInvalid: {status: 422, en: "Wrong recovery code",
		tr: "Hatalı kurtarma kodu", ar: "رمز الاسترداد غير صحيح"},
	fault.PasswordReused: {status: 422, en: "Password used before",
		tr: "Bu parola daha önce kullanıldı", ar: "كلمة المرور مستخدمة سابقا"},
	fault.PasswordWrong: {status: 422, en: "Wrong password",
		tr: "Hatalı parola", ar: "كلمة المرور غير صحيحة"},
	fault.IdempotencyMismatch: {status: 422, en: "Idempotency key used for another request",
		tr: "Tekrar anahtarı başka bir istekte kullanılmış",
		ar: "مفتاح التكرار مستخدم لطلب آخر"},
	fault.AccountNotActive: {status: 422, en: "Account not active",
		tr: "Hesap aktif değil", ar: "الحساب غير نشط"},
	fault.WithdrawalProhibited: {status: 422, en: "Withdrawals prohibited",
		tr: "Çekim işlemleri yasaklı", ar: "السحب محظور"},
	fault.AMLRisky: {status: 422, en: "AML status does not permit this",
		tr: "AML durumu bu işleme izin vermiyor", ar: "حالة مكافحة غسل الأموال لا تسمح بهذه العملية"},
	fault.PairDisabled: {status: 422, en: "Withdrawals of this currency on this network disabled",
		tr: "Bu para biriminin bu ağda çekimi kapalı", ar: "سحب هذه العملة على هذه الشبكة معطل"},
	fault.BelowMinimum: {status: 422, en: "Amount below the minimum",
		tr: "Tutar alt sınırın altında", ar: "المبلغ أقل من الحد الأدنى"},
	fault.LimitExceeded: {status: 422, en: "Limit exceeded",
		tr: "Limit aşıldı", ar: "تم تجاوز الحد"},
	fault.AddressNotAllowed: {status: 422, en: "Address not allowed for this withdrawal",
		tr: "Bu adrese çekime izin verilmiyor", ar: "السحب إلى هذا العنوان غير مسموح"},
	fault.InsufficientBalance: {status: 422, en: "Insufficient balance",
		tr: "Bakiye yetersiz", ar: "الرصيد غير كاف"},
	fault.PolicyDenied: {status: 422, en: "Not permitted by the money policy",
		tr: "Para politikası bu işleme izin vermiyor", ar: "سياسة الأموال لا تسمح بهذه العملية"},
	fault.OwnerRequired: {status: 422, en: "Approval by the account owner required",
		tr: "Hesap sahibinin onayı gerekli", ar: "موافقة صاحب الحساب مطلوبة"},

	fault.MethodLocked: {status: 423, en: "Method locked",
		tr: "Yöntem kilitlendi", ar: "تم قفل طريقة التحقق"},

	fault.RateLimited: {status: 429, en: "Too many requests",
		tr: "Çok fazla istek", ar: "طلبات كثيرة جدا", retry: true},
	fault.RenewTooEarly: {status: 429, en: "Too early to renew",
		tr: "Yenilemek için henüz erken", ar: "من المبكر التجديد", retry: true},

	fault.HeadersTooLarge: {status: 431, en: "Request headers too large",
		tr: "İstek başlıkları çok büyük", ar: "ترويسات الطلب كبيرة جدا"},

	fault.Internal: {status: 500, en: "Internal error", tr: "Sunucu hatası", ar: "خطأ داخلي"},

	fault.Unavailable: {status: 503, en: "Temporarily unavailable",
		tr: "Geçici olarak kullanılamıyor", ar: "الخدمة غير متاحة مؤقتا", retry: true},
	fault.Overloaded: {status: 503, en: "Overloaded",
		tr: "Sistem yoğun", ar: "الخدمة مثقلة", retry: true},
	fault.Draining: {status: 503, en: "Shutting down",
		tr: "Sunucu kapanıyor", ar: "الخادم قيد الإيقاف", retry: true},
}

// StatusOf is the HTTP status of a code; 500 for a code outside the registry.
func StatusOf(code fault.Code) int {
	if e, ok := registry[code]; ok {
		return e.status
	}
	return registry[fault.Internal].status
}

// typeOf is the URI of a code in problem details.
func typeOf(code fault.Code) string {
	return "urn:castellan:problem:" + strings.ReplaceAll(strings.ToLower(string(code)), "_", "-")
}
