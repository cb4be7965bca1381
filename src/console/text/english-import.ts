/** The texts of the page that imports objects in English. */
export const ENGLISH_IMPORT = {
  'import.about':
    'Choose a CSV file of a spreadsheet. Its first row names the columns. Nothing is written before you have seen what would happen; an empty cell leaves its field as it is.',
  'import.file': 'CSV file',
  'import.title': 'Import objects',
};
