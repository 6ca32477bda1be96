/** The pages' own texts. Messages of the service arrive localized: `language()` is sent as accept-language. */

export const texts = {
  en: {
    title: 'Castellan', tagline: 'Second factor, from the first click to a guarded account', docs: 'Interface', outbox: 'Outbox', language: 'Language',
    skip: 'Skip to content', dev: 'Development mode',
    step1: 'Log in', step2: 'Verify', step3: 'Session',
    loginTitle: 'Log in', loginLead: 'A right password alone opens nothing: it starts a challenge.', byPhone: 'Phone', byMail: 'Mail', loginBy: 'Log in with',
    countryCode: 'Country code', phoneNumber: 'Phone number', email: 'Mail address', password: 'Password', showPassword: 'Show', hidePassword: 'Hide',
    loginHint: 'The demo login was made on the first start. It is in the terminal, and in this file:', loginBusy: 'Checking…',
    challengeTitle: 'Is it you?', challengeLead: 'Answer with a code below. Codes sent to you appear in the outbox on this page.', challengeLeft: 'Challenge ends in', cancel: 'Start again',
    methodSMS: 'SMS', methodMAIL: 'Mail', methodTOTP: 'Authenticator app', methodPUSH: 'Approval on your device',
    sentTo: 'Sent to {hint}', fromApp: 'The six digits your app shows now', pushWait: 'Approve the request on your registered device. This page hears of it by itself.',
    code: 'Six-digit code', verify: 'Verify', verifying: 'Verifying…', expiresIn: 'Code ends in', expired: 'Expired',
    renew: 'Send a new code', renewIn: 'New code in {time}', renewClosed: 'No more new codes', renewed: 'A new code is on its way. The old one no longer works.',
    stateDone: 'Completed', stateLocked: 'Locked', stateExpired: 'Expired',
    attemptsLeft: { one: 'One attempt left.', other: '{n} attempts left.' }, attemptsNone: 'No attempt left.',
    lockedRenew: 'Send a new code to unlock this method.', lockedForGood: 'It stays locked for this challenge; use another method.',
    retryIn: 'Try again in {time}.', methodDoneText: 'Verified.', moreNeeded: 'One more method is needed.', executing: 'Verified. The action is running…',
    endedTitle: 'The challenge has ended', endedExpired: 'It expired before it was completed.', endedClosed: 'It was closed without an outcome: denied, too many wrong codes, or replaced by a newer one.',
    endedFailed: 'All methods are complete, but the action failed.', endedToken: 'Its token has expired.', endedLost: 'The service cannot be reached.', endedDenied: 'It was denied. Nothing was done.',
    sessionTitle: 'You are in',
    sessionLead: 'The outcome brought a session and its token. A reload of this page keeps both.',
    sessionKey: 'Session key', tokenEnds: 'Token ends in', tokenOver: 'Token has ended',
    claims: 'What the token says', claim: 'Claim', value: 'Value', logout: 'Log out',
    loggedOut: 'Logged out. Its token is refused from now on.', sessionGone: 'This session is over. Log in again.',
    console: 'Console', demoHint: 'In development mode, the logins of “castellan demo” are in this file:',
    forgot: 'Forgot the password? Reset it in the console', backToAccount: 'Back to the account',
    whatLogin: 'To log in', whatDevice: 'To register this browser as a device',
    passkeyTitle: 'Passkeys', passkeyLead: 'A passkey of this browser approves, and logs in, on this site only.',
    passkeyAdd: 'Add a passkey', passkeyAdded: 'The passkey was added.',
    passkeyLogin: 'Log in with a passkey', passkeyApprove: 'Approve with a passkey', whatPasskey: 'To add a passkey',
    remember: 'Remember this browser for {days} days',
    rememberHelp: 'Not on a shared computer. A change of your password forgets it.',
    enroll: 'Register this browser',
    approve: 'Approve', deny: 'Deny', approved: 'Approved.', denied: 'Denied.', numberLabel: 'Number that the other screen shows', matchNumber: 'Your device asks for this number:',
    accountTitle: 'The account in the console', accountLead: 'The console has the pages of the account. It asks for a login of its own.', accountSecurity: 'Password, authenticator app, devices and sessions', accountLimits: 'Balances and limits', accountCountries: 'Allowed countries', accountAddresses: 'Withdrawal addresses', accountNotifications: 'Notifications',
    outboxLead: 'What the service sent. Only development mode keeps it.', outboxEmpty: 'Nothing was sent yet.', useCode: 'Use this code', copyCode: 'Copy', copied: 'Copied', outboxFailed: 'The outbox cannot be read: {message}', to: 'To', filterTo: 'Phone or mail address', earlier: 'Earlier',
    logTitle: 'What happened', logLead: 'Requests, and what the socket brought.', logEmpty: 'Nothing yet.', clear: 'Clear', detail: 'Detail',
    socketOpen: 'listening', socketLost: 'socket closed', socketPoll: 'asking the result endpoint', outcomeVia: 'outcome by {via}', errorRequest: 'Request', close: 'Close',
    announceMethod: '{method} is complete.', announceDone: 'The challenge is complete.', network: 'The service could not be reached.',
    deviceTitle: 'Authenticator', toDevice: 'To the authenticator', deviceLead: 'A page that makes a browser a device of the account. It approves with a key of its own and needs no session.', deviceOpen: 'In a window of its own', deviceHere: 'Show it here',
  },
  tr: {
    title: 'Castellan', tagline: 'İlk tıklamadan korunan hesaba kadar ikinci faktör', docs: 'Arayüz', outbox: 'Giden kutusu', language: 'Dil',
    skip: 'İçeriğe geç', dev: 'Geliştirme kipi',
    step1: 'Giriş', step2: 'Doğrulama', step3: 'Oturum',
    loginTitle: 'Giriş yap', loginLead: 'Doğru parola tek başına yetmez: bir doğrulama başlatır.', byPhone: 'Telefon', byMail: 'E-posta', loginBy: 'Giriş yöntemi',
    countryCode: 'Ülke kodu', phoneNumber: 'Telefon numarası', email: 'E-posta adresi', password: 'Parola', showPassword: 'Göster', hidePassword: 'Gizle',
    loginHint: 'Deneme hesabı ilk açılışta oluşturuldu. Bilgileri terminalde ve şu dosyada:', loginBusy: 'Denetleniyor…',
    challengeTitle: 'Siz misiniz?', challengeLead: 'Aşağıya bir kod girin. Size gönderilen kodlar bu sayfadaki giden kutusunda görünür.', challengeLeft: 'Doğrulamanın bitmesine', cancel: 'Baştan başla',
    methodSMS: 'SMS', methodMAIL: 'E-posta', methodTOTP: 'Doğrulama uygulaması', methodPUSH: 'Cihazınızda onay',
    sentTo: '{hint} adresine gönderildi', fromApp: 'Uygulamanızın şu an gösterdiği altı hane', pushWait: 'İsteği kayıtlı cihazınızda onaylayın. Bu sayfa sonucu kendiliğinden öğrenir.',
    code: 'Altı haneli kod', verify: 'Doğrula', verifying: 'Doğrulanıyor…', expiresIn: 'Kodun bitmesine', expired: 'Süresi doldu',
    renew: 'Yeni kod gönder', renewIn: '{time} sonra yeni kod', renewClosed: 'Yeni kod gönderilemez', renewed: 'Yeni kod yolda. Eskisi artık geçersiz.',
    stateDone: 'Tamamlandı', stateLocked: 'Kilitli', stateExpired: 'Süresi doldu',
    attemptsLeft: { other: '{n} deneme hakkı kaldı.' }, attemptsNone: 'Deneme hakkı kalmadı.',
    lockedRenew: 'Kilidi açmak için yeni kod gönderin.', lockedForGood: 'Bu doğrulama boyunca kilitli kalır; başka bir yöntem kullanın.',
    retryIn: '{time} sonra yeniden deneyin.', methodDoneText: 'Doğrulandı.', moreNeeded: 'Bir yöntem daha gerekiyor.', executing: 'Doğrulandı. İşlem yürütülüyor…',
    endedTitle: 'Doğrulama sona erdi', endedExpired: 'Tamamlanmadan süresi doldu.', endedClosed: 'Sonuçsuz kapandı: reddedildi, çok fazla yanlış kod girildi ya da yenisi başlatıldı.',
    endedFailed: 'Bütün yöntemler tamamlandı ama işlem başarısız oldu.', endedToken: 'Belirtecinin süresi doldu.', endedLost: 'Hizmete ulaşılamıyor.', endedDenied: 'Reddedildi. Hiçbir şey yapılmadı.',
    sessionTitle: 'İçeridesiniz',
    sessionLead: 'Sonuç bir oturum ve belirtecini getirdi. Bu sayfa yenilendiğinde ikisi de kalır.',
    sessionKey: 'Oturum anahtarı', tokenEnds: 'Belirtecin bitmesine', tokenOver: 'Belirtecin süresi doldu',
    claims: 'Belirteç ne diyor', claim: 'Alan', value: 'Değer', logout: 'Çıkış yap',
    loggedOut: 'Çıkış yapıldı. Belirteci artık kabul edilmez.', sessionGone: 'Bu oturum bitti. Yeniden giriş yapın.',
    console: 'Konsol', demoHint: 'Geliştirme kipinde “castellan demo” girişleri şu dosyadadır:',
    forgot: 'Parolanızı mı unuttunuz? Konsolda sıfırlayın', backToAccount: 'Hesaba dön',
    whatLogin: 'Giriş yapmak için', whatDevice: 'Bu tarayıcıyı cihaz olarak kaydetmek için',
    passkeyTitle: 'Geçiş anahtarları',
    passkeyLead: 'Bu tarayıcının geçiş anahtarı yalnızca bu sitede onaylar ve giriş yapar.',
    passkeyAdd: 'Geçiş anahtarı ekle', passkeyAdded: 'Geçiş anahtarı eklendi.',
    passkeyLogin: 'Geçiş anahtarıyla giriş yap', passkeyApprove: 'Geçiş anahtarıyla onayla',
    whatPasskey: 'Geçiş anahtarı eklemek için',
    remember: 'Bu tarayıcıyı {days} gün hatırla',
    rememberHelp: 'Ortak bir bilgisayarda kullanmayın. Parola değişikliği bunu sona erdirir.',

    enroll: 'Bu tarayıcıyı kaydet',
    approve: 'Onayla', deny: 'Reddet', approved: 'Onaylandı.', denied: 'Reddedildi.', numberLabel: 'Öbür ekranın gösterdiği sayı', matchNumber: 'Cihazınız bu sayıyı soracak:',
    accountTitle: 'Hesap, konsolda', accountLead: 'Hesabın sayfaları konsoldadır. Konsol ayrıca giriş ister.', accountSecurity: 'Parola, doğrulama uygulaması, cihazlar ve oturumlar', accountLimits: 'Bakiyeler ve limitler', accountCountries: 'İzin verilen ülkeler', accountAddresses: 'Çekim adresleri', accountNotifications: 'Bildirimler',
    outboxLead: 'Hizmetin gönderdikleri. Yalnızca geliştirme kipinde saklanır.', outboxEmpty: 'Henüz bir şey gönderilmedi.', useCode: 'Bu kodu kullan', copyCode: 'Kopyala', copied: 'Kopyalandı', outboxFailed: 'Giden kutusu okunamıyor: {message}', to: 'Alıcı', filterTo: 'Telefon veya e-posta adresi', earlier: 'Önceki',
    logTitle: 'Neler oldu', logLead: 'İstekler ve soketin getirdikleri.', logEmpty: 'Henüz bir şey yok.', clear: 'Temizle', detail: 'Ayrıntı',
    socketOpen: 'dinleniyor', socketLost: 'soket kapandı', socketPoll: 'sonuç uç noktası soruluyor', outcomeVia: 'sonuç geldi: {via}', errorRequest: 'İstek', close: 'Kapat',
    announceMethod: '{method} tamamlandı.', announceDone: 'Doğrulama tamamlandı.', network: 'Hizmete ulaşılamadı.',
    deviceTitle: 'Doğrulayıcı', toDevice: 'Doğrulayıcıya git', deviceLead: 'Bir tarayıcıyı hesabın cihazı yapan sayfa. Kendi anahtarıyla onaylar, oturum gerekmez.', deviceOpen: 'Kendi penceresinde', deviceHere: 'Burada göster',
  },
  ar: {
    title: 'Castellan', tagline: 'العامل الثاني من النقرة الأولى حتى حساب محمي', docs: 'الواجهة', outbox: 'الصادر', language: 'اللغة',
    skip: 'انتقل إلى المحتوى', dev: 'وضع التطوير',
    step1: 'الدخول', step2: 'التحقق', step3: 'الجلسة',
    loginTitle: 'تسجيل الدخول', loginLead: 'كلمة المرور الصحيحة لا تكفي وحدها، بل تبدأ عملية تحقق.', byPhone: 'الهاتف', byMail: 'البريد', loginBy: 'طريقة الدخول',
    countryCode: 'رمز الدولة', phoneNumber: 'رقم الهاتف', email: 'البريد الإلكتروني', password: 'كلمة المرور', showPassword: 'إظهار', hidePassword: 'إخفاء',
    loginHint: 'أُنشئ حساب التجربة عند التشغيل الأول. بياناته في الطرفية وفي هذا الملف:', loginBusy: 'جارٍ التحقق…',
    challengeTitle: 'هل هذا أنت؟', challengeLead: 'أدخل رمزًا أدناه. الرموز المرسلة إليك تظهر في الصادر في هذه الصفحة.', challengeLeft: 'ينتهي التحقق خلال', cancel: 'ابدأ من جديد',
    methodSMS: 'رسالة نصية', methodMAIL: 'البريد الإلكتروني', methodTOTP: 'تطبيق المصادقة', methodPUSH: 'موافقة على جهازك',
    sentTo: 'أُرسل إلى {hint}', fromApp: 'الأرقام الستة التي يعرضها تطبيقك الآن', pushWait: 'وافق على الطلب من جهازك المسجل. ستعلم هذه الصفحة بذلك تلقائيًا.',
    code: 'رمز من ستة أرقام', verify: 'تحقق', verifying: 'جارٍ التحقق…', expiresIn: 'ينتهي الرمز خلال', expired: 'انتهت الصلاحية',
    renew: 'أرسل رمزًا جديدًا', renewIn: 'رمز جديد خلال {time}', renewClosed: 'لا رموز جديدة بعد الآن', renewed: 'رمز جديد في الطريق. لم يعد الرمز القديم صالحًا.',
    stateDone: 'مكتمل', stateLocked: 'مقفل', stateExpired: 'منتهٍ',
    attemptsLeft: { zero: 'لم تبقَ محاولات.', one: 'بقيت محاولة واحدة.', two: 'بقيت محاولتان.', few: 'بقيت {n} محاولات.', many: 'بقيت {n} محاولة.', other: 'بقيت {n} محاولة.' }, attemptsNone: 'لم تبقَ محاولات.',
    lockedRenew: 'أرسل رمزًا جديدًا لفتح القفل.', lockedForGood: 'تبقى مقفلة طوال هذا التحقق؛ استخدم طريقة أخرى.',
    retryIn: 'حاول مجددًا خلال {time}.', methodDoneText: 'تم التحقق.', moreNeeded: 'يلزم طريقة أخرى.', executing: 'تم التحقق. العملية قيد التنفيذ…',
    endedTitle: 'انتهى التحقق', endedExpired: 'انتهت صلاحيته قبل أن يكتمل.', endedClosed: 'أُغلق دون نتيجة: رُفض، أو كثرت الرموز الخاطئة، أو حلّ محله تحقق أحدث.',
    endedFailed: 'اكتملت كل الطرق لكن العملية فشلت.', endedToken: 'انتهت صلاحية رمزه المميز.', endedLost: 'تعذر الوصول إلى الخدمة.', endedDenied: 'رُفض الطلب. لم يُنفّذ شيء.',
    sessionTitle: 'تم الدخول',
    sessionLead: 'جاءت النتيجة بجلسة ورمزها المميز. وكلاهما يبقى بعد إعادة تحميل هذه الصفحة.',
    sessionKey: 'مفتاح الجلسة', tokenEnds: 'ينتهي الرمز المميز خلال', tokenOver: 'انتهى الرمز المميز',
    claims: 'ما يقوله الرمز المميز', claim: 'الحقل', value: 'القيمة', logout: 'تسجيل الخروج',
    loggedOut: 'تم تسجيل الخروج. يُرفض رمزها من الآن.', sessionGone: 'انتهت هذه الجلسة. سجّل الدخول من جديد.',
    console: 'لوحة التحكم', demoHint: 'في وضع التطوير، بيانات الدخول التي ينشئها «castellan demo» في هذا الملف:',
    forgot: 'هل نسيت كلمة المرور؟ أعد تعيينها في لوحة التحكم', backToAccount: 'العودة إلى الحساب',
    whatLogin: 'لتسجيل الدخول', whatDevice: 'لتسجيل هذا المتصفح جهازًا',
    passkeyTitle: 'مفاتيح المرور', passkeyLead: 'مفتاح المرور في هذا المتصفح يوافق ويسجل الدخول في هذا الموقع فقط.',
    passkeyAdd: 'إضافة مفتاح مرور', passkeyAdded: 'أضيف مفتاح المرور.',
    passkeyLogin: 'تسجيل الدخول بمفتاح مرور', passkeyApprove: 'الموافقة بمفتاح مرور', whatPasskey: 'لإضافة مفتاح مرور',
    remember: 'تذكر هذا المتصفح لمدة {days} يوم',
    rememberHelp: 'ليس على حاسوب مشترك. تغيير كلمة المرور يلغي التذكر.',

    enroll: 'سجّل هذا المتصفح',
    approve: 'موافقة', deny: 'رفض', approved: 'تمت الموافقة.', denied: 'تم الرفض.', numberLabel: 'الرقم الذي تعرضه الشاشة الأخرى', matchNumber: 'سيسألك جهازك عن هذا الرقم:',
    accountTitle: 'الحساب في لوحة التحكم', accountLead: 'صفحات الحساب في لوحة التحكم، وهي تطلب تسجيل دخول خاصًا بها.', accountSecurity: 'كلمة المرور وتطبيق المصادقة والأجهزة والجلسات', accountLimits: 'الأرصدة والحدود', accountCountries: 'الدول المسموح بها', accountAddresses: 'عناوين السحب', accountNotifications: 'الإشعارات',
    outboxLead: 'ما أرسلته الخدمة. يُحفظ في وضع التطوير فقط.', outboxEmpty: 'لم يُرسل شيء بعد.', useCode: 'استخدم هذا الرمز', copyCode: 'نسخ', copied: 'نُسخ', outboxFailed: 'تعذرت قراءة الصادر: {message}', to: 'إلى', filterTo: 'هاتف أو بريد إلكتروني', earlier: 'سابق',
    logTitle: 'ماذا حدث', logLead: 'الطلبات وما جاء به المقبس.', logEmpty: 'لا شيء بعد.', clear: 'مسح', detail: 'التفاصيل',
    socketOpen: 'يستمع', socketLost: 'أُغلق المقبس', socketPoll: 'سؤال نقطة النتيجة', outcomeVia: 'وصلت النتيجة عبر {via}', errorRequest: 'الطلب', close: 'إغلاق',
    announceMethod: 'اكتملت: {method}.', announceDone: 'اكتمل التحقق.', network: 'تعذر الوصول إلى الخدمة.',
    deviceTitle: 'المصادِق', toDevice: 'إلى المصادِق', deviceLead: 'صفحة تجعل المتصفح جهازًا للحساب. توافق بمفتاحها الخاص ولا تحتاج إلى جلسة.', deviceOpen: 'في نافذة مستقلة', deviceHere: 'اعرضه هنا',
  },
};

/** Adds the texts that only one page needs: for each language, its keys. */
export function addTexts(more) {
  for (const [tag, list] of Object.entries(more)) Object.assign(texts[tag], list);
}

const KEY = 'castellan-language';
let current = pick();

function pick() {
  let stored;
  try { stored = localStorage.getItem(KEY); } catch { /* storage can be switched off */ }
  const wanted = [stored, ...navigator.languages].map((tag) => String(tag).slice(0, 2));
  return wanted.find((tag) => texts[tag]) ?? 'en';
}

export const language = () => current;

/** Switches the language of the page; views that build their own elements listen to `languagechanged` on document. */
function setLanguage(tag) {
  current = texts[tag] ? tag : 'en';
  try { localStorage.setItem(KEY, current); } catch { /* it lasts until the page is left */ }
  translate();
  document.dispatchEvent(new Event('languagechanged'));
}

/** The text of a key; `{name}` is replaced. A text with plural forms takes `n`. */
export function t(key, values = {}) {
  let text = texts[current][key] ?? texts.en[key] ?? key;
  if (typeof text === 'object') text = text[new Intl.PluralRules(current).select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
}

/** Fills `data-t` (text), `data-t-label` (aria-label) and `data-t-placeholder` below root. */
export function translate(root = document) {
  document.documentElement.lang = current;
  document.documentElement.dir = current === 'ar' ? 'rtl' : 'ltr';
  for (const element of root.querySelectorAll('[data-t]')) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll('[data-t-label]')) element.setAttribute('aria-label', t(element.dataset.tLabel));
  for (const element of root.querySelectorAll('[data-t-placeholder]')) element.placeholder = t(element.dataset.tPlaceholder);
}

/** Wires a <select> as the language switch. */
export function languageSwitch(select) {
  select.value = current;
  select.addEventListener('change', () => setLanguage(select.value));
  translate();
}

/** Date and time in the page's language, with the digits of the rest of the page. */
export function moment(date) {
  return new Intl.DateTimeFormat(`${current}-u-nu-latn`, { dateStyle: 'medium', timeStyle: 'medium' }).format(date);
}
