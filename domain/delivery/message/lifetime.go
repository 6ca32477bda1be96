package message

import "strconv"

// cachedMinutes covers every possible lifetime of a code (D-2FA-04: at most ten minutes), so that the usual message
// needs no formatting.
const cachedMinutes = 10

var lifetimes = func() map[string]*[cachedMinutes + 1]string {
	out := map[string]*[cachedMinutes + 1]string{}
	for _, lang := range []string{"tr", "en", "ar"} {
		var t [cachedMinutes + 1]string
		for n := 1; n <= cachedMinutes; n++ {
			t[n] = spell(n, lang, minute)
		}
		out[lang] = &t
	}
	return out
}()

// lifetime formats s, whole seconds in digits, as a duration. Any other text, and any number beyond a day, is
// unchanged. From three minutes on it rounds down to minutes, so a code lives at least as long as stated.
func lifetime(s, lang string) string {
	if s == "" {
		return s
	}
	seconds, err := strconv.ParseUint(s, 10, 64)
	if err != nil || seconds > 86_400 {
		return s
	}
	lang = base(lang)
	if seconds == 0 || seconds%60 != 0 && seconds < 180 {
		return spell(int(seconds), lang, second)
	}
	n := int(seconds / 60)
	if t := lifetimes[lang]; t != nil && n <= cachedMinutes {
		return t[n]
	}
	return spell(n, lang, minute)
}

const (
	minute = iota
	second
)

// arabic holds the forms that Arabic's plural rules distinguish: one, two, 3–10 of each hundred, and the rest.
var arabic = [...]struct{ one, two, few, many string }{
	minute: {"دقيقة واحدة", "دقيقتين", "دقائق", "دقيقة"},
	second: {"ثانية واحدة", "ثانيتين", "ثوانٍ", "ثانية"},
}

func spell(n int, lang string, unit int) string {
	digits := strconv.Itoa(n)
	switch lang {
	case "tr":
		return digits + [...]string{minute: " dakika", second: " saniye"}[unit]
	case "ar":
		switch word := arabic[unit]; {
		case n == 1:
			return word.one
		case n == 2:
			return word.two
		case n%100 >= 3 && n%100 <= 10:
			return digits + " " + word.few
		default:
			return digits + " " + word.many
		}
	default:
		word := [...]string{minute: " minute", second: " second"}[unit]
		if n != 1 {
			word += "s"
		}
		return digits + word
	}
}
