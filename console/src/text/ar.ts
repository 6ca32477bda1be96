import app from './ar/app.json';
import kit from './ar/kit.json';
import user from './ar/user.json';
import kyc from './ar/kyc.json';
import money from './ar/money.json';
import content from './ar/content.json';
import security from './ar/security.json';
import system from './ar/system.json';
import own from './ar/own.json';
import state from './ar/state.json';

export default { ...app, ...kit, ...user, ...kyc, ...money, ...content, ...security, ...system, ...own, ...state };
