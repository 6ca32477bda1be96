package legacy_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/storetest"
)

const typed = "correct horse 42"

// vectors were made by other programs: crypt(3) of libxcrypt, Python's hashlib, passlib 1.7.4, Django 3.2, the
// reference program of argon2 and OpenSSL by Node.js 20. Those of PHPass, Firebase, Spring Security and ASP.NET Core
// Identity are published examples.
var vectors = []struct{ name, password, text string }{
	{"bcrypt 2b", typed, "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"},
	{"bcrypt 2y", "pässword", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.FJj9w2dMxG/OMSU5q.D3h/cEq6ERrnu"},
	{"bcrypt of 72 bytes", strings.Repeat("x", 72), "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i"},
	{"bcrypt of Django", typed, "bcrypt$$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"},
	{"bcrypt over SHA-256", typed, "bcrypt_sha256$$2b$04$abcdefghijklmnopqrstuuV8g99T7cUDC.KJ0qcpustYpmOGEi7vW"},
	{"md5crypt", typed, "$1$saltsalt$U5PPxPfpoKVAXsDNH45JE0"},
	{"md5crypt, short salt", "pässword", "$1$ab$zSxXTAOa3MsUL6fbBrrN71"},
	{"md5crypt of passlib", typed, "$1$gzNZN0q4$6WJtYd7WKmDOiQkXr0xg51"},
	{"PHPass", "test12345", "$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0"},
	{"PHPass of passlib", typed, "$P$60kR84/2CT.sPqmbxq.mkAa/yc1CmW1"},
	{"PHPass of phpBB", "test12345", "$H$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0"},
	{"PBKDF2-SHA1", typed, "$pbkdf2$1000$817LuXdOqTWGMEZISQlBCA$A/BiNw9OfQmj84HzHwit8W4pluw"},
	{"PBKDF2-SHA256", typed, "$pbkdf2-sha256$1000$3vtfy/l/z9l7T6n1fg.B8A$6SCjYJmVDOp1J0EnE1UfAm/AhiE15Xu5ASRbV145mbo"},
	{"PBKDF2-SHA512", typed, "$pbkdf2-sha512$1000$eI.RMkbIOcdYS2nt/d875w$" +
		".cBWMAH1sBNK/9lHxKW.bnCRFBYm7XepHoit71JBZbAnWsqqUgHjtGcmmFEzhFdylLlxIsajRGNr6a/0TB19vQ"},
	{"PBKDF2-SHA256 of Django", typed,
		"pbkdf2_sha256$260000$XmWujr6yE9uqtznsq7Ia9C$CPyQY5HlJT73OKRq0ekPSNmoVKquJWFq6Y6ssWZysuQ="},
	{"PBKDF2-SHA1 of Django", typed, "pbkdf2_sha1$260000$ikhYyomAFvknqp5xVXgi9z$fMeOVcWw6rN8SjzKcCZ1g5TlbX0="},
	{"scrypt of passlib", typed,
		"$scrypt$ln=10,r=8,p=1$NwZASAlhTEkJwXiPMWYsxQ$9CrEHqawmHE0Lg3DZkjOvFEBnq4vPaPxZyc27Na82ts"},
	{"scrypt of Django", typed, "scrypt$1024$0123456789abcdef$8$1$" +
		"Fv9pzOh9itzxlDiW4tIo1FYNV0U+V7GDEiWnX9He6arfcEzn1QRN2EP1S3mMZOGeJcmgHmoLARw17+oq+tXV2w=="},
	{"argon2id", typed, "$argon2id$v=19$m=1024,t=2,p=2$c29tZXNhbHQxMjM0NTY$j1M2GRQVSfx+oiwG25VO6NRdMIK4kgHRDXzTgnnB87I"},
	{"argon2i", typed, "$argon2i$v=19$m=1024,t=3,p=2$c29tZXNhbHQxMjM0NTY$jWoO6JiCk9sbJSyA6leyL2tt+jdszWg2iRdTl2ZgZuc"},
	{"argon2id of Django", typed, "argon2$argon2id$v=19$m=102400,t=2,p=8$cnlrcDZDejk5blZHbk55dmhwQXVaMg$" +
		"1NuRJOSd/B77EdfKHuekvw"},
	{"SHA-1 of Django", typed, "sha1$bHuOkd5KGjTP8BsnmCSr9h$56a39f4928771604dd12502b391bdb1ecc7cb321"},
	{"MD5 of Django", typed, "md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94"},
	{"MD5 without a salt", typed, "md5$$9ed6210e741906ee73fa04b9225dd63f"},
	{"SHA-256, salt first", typed, "sha256$salt$392e0f09fc68129ff84461180174db4e788599318d2314b6003277f69e68839c"},
	{"SHA-512, salt first", typed, "sha512$salt$4fc63602c90c461bf9919544aac78b67809adb756be2290e578f36a305eb71a4" +
		"ceda3a7fa320bf650686e925f2160b48a37c29cf5d0181769220e6e9f3d1f8a0"},
	{"SSHA", typed, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0"},
	{"SSHA of passlib", typed, "{SSHA}KTRKqaOU+8swbZAMyT5CKTxqEloA4DwH"},
	{"SSHA256", typed, "{SSHA256}BYKX+scWc+fCQZQqJ9xtVREK9elG19kH6BSKWXyr4JUGwDgnRCgFwA=="},
	{"SMD5", typed, "{SMD5}gIueAQwKAD3ttUqusBMGTDvHmBM="},
	{"SHA256-crypt", typed, "$5$saltstring$LbXFSIwwD/t6gQpN4VeaARTIfDY1DnBUlKckPNGq2AA"},
	{"SHA256-crypt with rounds", typed,
		"$5$rounds=1400$anotherlongsalts$Ox5EGXUAxGAPOaeJg/drvMIE2pQxR.50yxSZAGBhJU6"},
	{"SHA256-crypt of letters", "çok güzel şifre", "$5$x$YOFIouojBQyhS0/Va5BWl4/vOQiTiqYw4BWi4klTwc1"},
	{"SHA512-crypt", typed, "$6$saltstring$Mwwzi/Kj04QQMutuZ.KLZ5YVR677SA2bVBo8.1IgXGeq/ixte96iklQ13gBLIFap/" +
		"cyxGSHPKZqc3Bvomw/n70"},
	{"SHA512-crypt with rounds", typed, "$6$rounds=1000$s$SDFYvimDazUoWxFwG3lgwm9KtOGW5pLdksty8AebRDg1MRuC3pIHYvR5" +
		"GtRp7kYbTQKXzaER/rcgnKSNuBT/V1"},
	{"SHA512-crypt, longest salt", typed, "$6$0123456789abcdef$76HKacKOR9ZX1q8oj2Kb1NY/aPtm1EsNzCHfOl43df.00HFraYGM" +
		"TGsvDteaPrT1lNWpHkgOsyyU5Ea3K5t7a1"},
	{"SHA512-crypt of 200 bytes", strings.Repeat("a", 200), "$6$x$O7igG6oA24wqdGY.fWyF5whCajEwFcrCMyOnVF5Afn1yQ33U9z" +
		"QNZLxd.3FhRJ7SaqLK7jWL8sjUXPqB04sZm1"},
	{"PBKDF2-SHA512 in PHC form", typed, "$pbkdf2-sha512$i=1000,l=64$AAECAwQFBgcICQoLDA0ODw$TWrm2w2zrsS3Yh3iwLfbxv" +
		"LJCMZatkx6zvJmDB8u1fUovfGaoGmddPIe1qeTN+9DennnvPZ55daEWOo5SZ/1Ag"},
	{"PBKDF2-SHA512 of two blocks", typed, "$pbkdf2-sha512$i=1000,l=80$AAECAwQFBgcICQoLDA0ODw$TWrm2w2zrsS3Yh3iwLfb" +
		"xvLJCMZatkx6zvJmDB8u1fUovfGaoGmddPIe1qeTN+9DennnvPZ55daEWOo5SZ/1ArUKXJYBihWSZMECRCZaWtA"},
	{"PBKDF2-SHA384", typed, "$pbkdf2-sha384$i=1000,keylen=48$AAECAwQFBgcICQoLDA0ODw$yf0SYfLdJQBTJ58moT4oxR/JIiCs" +
		"Audty9huBF4Tfjkj4ZGiA+eyM9Gv28aQH+nz"},
	{"PBKDF2-SHA224", typed, "$pbkdf2-sha224$i=1000$AAECAwQFBgcICQoLDA0ODw==$8hUkMsv0m5XRlBoiRPq+A8QFORMxS1KkDzW/Ag"},
	{"PBKDF2-SHA1 in PHC form", typed, "$pbkdf2$i=1000,l=20$AAECAwQFBgcICQoLDA0ODw$pkPmxNiauip2lsQ1qUPVGTdzdsg"},
	{"scrypt of Kratos", typed,
		"$scrypt$ln=1024,r=8,p=1$AAECAwQFBgcICQoLDA0ODw==$s7c/aq4rGKGxbBReNXrQ7+J8zIwCjcMYQgCVhe+JfNw="},
	{"bcrypt of WordPress", typed, "$wp$2y$04$abcdefghijklmnopqrstuut9Bfv7ef5QC7GY2hrgHLnQcLuZYEbb."},
	{"bcrypt of Spring", "password", "{bcrypt}$2a$10$dXJ3SW6G7P50lGmMkkmwe.20cQQubK3.HZWzG3YB1tlRy.fqvM/BG"},
	{"PBKDF2 of Spring", "password",
		"{pbkdf2}5d923b44a6d129f3ddf3e3c8d29412723dcbde72445e8ef6bf3b508fbf17fa4ed4d6b99ca763d8dc"},
	{"scrypt of Spring", "password", "{scrypt}$e0801$8bWJaSu2IKSn9Z9kM+TPXfOc/9bdYSrN1oD9qfVThWEwdRTnO7re7Ei+fUZRJ6" +
		"8k9lTyuTeUp4of4g24hHnazw==$OAOec05+bXxvuu/1qZ6NUR+xQYvYv7BeL1QxwRpY5Pc="},
	{"argon2id of Spring", typed, "{argon2@SpringSecurity_v5_8}$argon2id$v=19$m=1024,t=2,p=2$c29tZXNhbHQxMjM0NTY$" +
		"j1M2GRQVSfx+oiwG25VO6NRdMIK4kgHRDXzTgnnB87I"},
	{"LDAP of Spring", typed, "{ldap}{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0"},
	{"ASP.NET Identity 2", "my password", "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg=="},
	{"ASP.NET Identity 3", "my password", "AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4B6pZWND6zgESBuWiHw"},
	{"ASP.NET Identity 3, SHA-256", typed,
		"AQAAAAEAAAPoAAAAEAABAgMEBQYHCAkKCwwNDg+WvzIJ3Y8SfsAihDklkv+zLMZBdswgEWSfiFWLekjyow=="},
}

func argon(password, salt []byte, kib, passes uint32, lanes uint8, independent bool, n uint32) []byte {
	if independent {
		return argon2.Key(password, salt, passes, kib, lanes, n)
	}
	return argon2.IDKey(password, salt, passes, kib, lanes, n)
}

func matches(t *testing.T, h legacy.Hash, password string) bool {
	t.Helper()
	got := storetest.Value(h.Derive([]byte(password), argon))(t)
	return len(got) > 0 && bytes.Equal(got, h.Tag) && h.Fits(password)
}

// check demands that only the password matches, and that the form of the database keeps the hash.
func check(t *testing.T, h legacy.Hash, password string) {
	t.Helper()
	again, err := legacy.Parse(h.String())
	if err != nil || again.String() != h.String() {
		t.Fatalf("%s was read as %s, %v", h, again, err)
	}
	for try, want := range map[string]bool{password: true, password + " ": false, password[1:]: false, "": false} {
		storetest.Equal(t, matches(t, again, try), want, try)
	}
}

// Every kind of hash accepts the password for which another program made it, and no other.
func TestVectorsOfOtherPrograms(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			h, none, err := legacy.Read(v.text)
			if err != nil || none {
				t.Fatalf("none %v, %v", none, err)
			}
			check(t, h, v.password)
		})
	}
}

// A hash in parts is the same hash.
func TestHashesInParts(t *testing.T) {
	const salt = "MDEyMzQ1Njc4OWFiY2RlZg==" // 0123456789abcdef
	for name, c := range map[string]struct {
		password string
		legacy.Parts
	}{
		// The example of github.com/firebase/scrypt.
		"Firebase": {"user1password", legacy.Parts{Alg: "firebase-scrypt", Salt: "42xEC+ixf3L2lw==", SaltSeparator: "Bw==",
			SignerKey: "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",
			Hash:      "lSrfV15cpx95_sZS2W9c9Kp6i_LVgQNDNC_qzrCnh1SAyZvqmZqAjTdn3aoItz-VHjoZilo78198JAdRuid5lQ==",
			Rounds:    8, MemCost: 14}},
		"scrypt": {typed, legacy.Parts{Alg: "scrypt", Salt: salt, N: 1024, R: 8, P: 1,
			Hash: "Fv9pzOh9itzxlDiW4tIo1FYNV0U+V7GDEiWnX9He6arfcEzn1QRN2EP1S3mMZOGeJcmgHmoLARw17+oq+tXV2w=="}},
		// More than one block, as older versions of Keycloak store.
		"PBKDF2": {typed, legacy.Parts{Alg: "pbkdf2-sha256", Salt: salt, Iterations: 27500,
			Hash: "eqORUW6g15Y1DMEMdY88P5DF1yTxzyJxWPo9EHQ6Cu4wvpHCML5vcr8UW3TwmQE+95NDdOGnSM9G7dgm0Pxpnw=="}},
		"argon2i": {typed, legacy.Parts{Alg: "argon2i", Salt: "c29tZXNhbHQxMjM0NTY", Memory: 1024, Passes: 3, Lanes: 2,
			Hash: "jWoO6JiCk9sbJSyA6leyL2tt+jdszWg2iRdTl2ZgZuc"}},
		"SHA-1, salt last": {typed, legacy.Parts{Alg: "sha1", Salt: "73616c74", Order: "salt-last", Encoding: "hex",
			Hash: "dc761763545789999b3a926bf14d8d04855f73f8"}},
		"MD5, salt last": {typed, legacy.Parts{Alg: "md5", Salt: "73616c74", Order: "salt-last", Encoding: "hex",
			Hash: "cb9d3ea379c8fd834a815f4c6ba94850"}},
		"bcrypt": {typed, legacy.Parts{Alg: "bcrypt", Hash: "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := storetest.Value(c.Read())(t)
			check(t, h, c.password)
			if c.SignerKey != "" && strings.Contains(h.String(), "jxspr8Ki0RYycVU8") {
				t.Error("the signer key is stored")
			}
		})
	}
}

// bcrypt here and the usual package agree.
func TestBcryptMatchesXCrypto(t *testing.T) {
	for _, password := range []string{"a", "şifre", strings.Repeat("0123456789", 7), strings.Repeat("z", 72)} {
		text := storetest.Value(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
		h, _, err := legacy.Read(string(text))
		if err != nil || !matches(t, h, password) || matches(t, h, password+"x") {
			t.Errorf("%q does not match, %v", password, err)
		}
	}
}
