package user

import (
	"strings"

	"castellan/domain/kit/fault"
)

// longDials are the two-digit dialling codes of ITU-T E.164. Codes of one digit are 1 and 7, and all others have three.
const longDials = " 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 " +
	"65 66 81 82 84 86 90 91 92 93 94 95 98 "

// International reads a number in international form, as other services store it: "+", dialling code, number. It
// returns the dialling code and the canonical number.
//
// Errors: INVALID_FIELD naming phoneNumber.
func International(text string) (dial, e164 string, err error) {
	bad := fault.Invalid("phoneNumber", "must begin with + and the dialling code")
	text, ok := strings.CutPrefix(strings.Map(separator, strings.TrimSpace(text)), "+")
	if !ok || len(text) < 3 || !digits(text[:3]) || text[0] == '0' {
		return "", "", bad
	}
	switch {
	case text[0] == '1' || text[0] == '7':
		dial = text[:1]
	case strings.Contains(longDials, " "+text[:2]+" "):
		dial = text[:2]
	default:
		dial = text[:3]
	}
	if e164, err = international(dial, text[len(dial):]); err != nil {
		return "", "", err
	}
	return dial, e164, nil
}
