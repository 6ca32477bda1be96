import app from './ar/app.json';
import kit from './ar/kit.json';
import delivery from './ar/delivery.json';
import guard from './ar/guard.json';
import access from './ar/access.json';
import money from './ar/money.json';
import office from './ar/office.json';
import people from './ar/people.json';

export default { ...app, ...kit, ...delivery, ...guard, ...access, ...money, ...office, ...people };
